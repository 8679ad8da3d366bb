"""A matrix of one edge, or none, has but one order of its edges."""

import jax.numpy as jnp
import pytest

import jaxspv as jsp


@pytest.mark.parametrize("edges", [0, 1])
def test_values_of_one_edge_are_never_in_another_order(edges):
    ends = jnp.zeros(edges, jnp.int32)
    A = jsp.from_edges(ends, ends, jnp.ones(edges), shape=(1, 1)).asformat("csc")
    assert A.with_data(2 * A.data).todense().tolist() == [[2.0 * edges]]
