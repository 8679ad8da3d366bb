"""Which path carries the derivative of a distance: at ties, at edges that add nothing, in loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algorithms._tree import _first_nearer, _first_nearer_sequential, tree_slots


def slopes(A, source, at):
    return jax.grad(lambda w: jsp.sssp(A.with_data(w), source).distances[at])(A.data).tolist()


def test_at_ties_the_nearer_predecessor_of_smallest_id_carries_it():
    # 0 -> 3 over 1 or over 2, both of length 2; the edges in the order of their slots
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], [1.0, 1.0, 1.0, 1.0], shape=(4, 4))
    assert slopes(A, 0, 3) == [1.0, 0.0, 1.0, 0.0]
    two = jax.jacobian(lambda w: jsp.sssp(A.with_data(w), jnp.arange(2)).distances[:, 3])(A.data)
    assert two.tolist() == [[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]]


def test_zero_weights_and_a_zero_cycle_still_give_one_path():
    A = jsp.from_edges([0, 1, 2, 2, 3], [1, 2, 1, 3, 2], [1.0, 0.0, 0.0, 0.0, 0.0], shape=(4, 4))
    got = slopes(A, 0, 3)
    assert got == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert slopes(A, 1, 0) == [0.0] * 5  # unreached


def test_negative_weights():
    A = jsp.from_edges([0, 0, 1], [1, 2, 2], [3.0, 2.0, -2.0], shape=(3, 3))
    assert slopes(A, 0, 2) == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("seed", range(3))
def test_both_forms_find_the_same_slots_and_those_make_a_tree(seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(0 if seed == 2 else 1, 4, 200).astype(np.float32)
    A = jsp.from_edges(rng.integers(0, 40, 200), rng.integers(0, 40, 200), weights,
                       shape=(40, 40), nse=210, dup=jsp.monoids.min_)  # fmt: skip
    d = jsp.sssp(A, 0).distances
    one = _first_nearer(A.rowcol(), A.data, d)
    np.testing.assert_array_equal(one, _first_nearer_sequential(A.indptr, A.indices, A.data, d))
    slot = np.asarray(tree_slots(A, d, jnp.int32(0)))
    row, col = (np.asarray(i) for i in A.rowcol())
    for v in range(1, 40):
        length, at, hops = 0.0, v, 0
        while np.isfinite(d[v]) and at != 0:
            assert col[slot[at]] == at and hops < 40
            length, at, hops = length + float(A.data[slot[at]]), row[slot[at]], hops + 1
        assert not np.isfinite(d[v]) or length == d[v]
