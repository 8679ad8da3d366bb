"""The one of a semiring in narrow dtypes: closures and compositions against sums by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

DTYPES = ("int8", "uint8", "int32", "bool", "float16", "bfloat16", "float32")
BEST = {"max_min": (max, min), "min_max": (min, max)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BEST)
def test_bottlenecks_of_every_dtype(name, dtype):
    """Ways 0 -> 1 -> 3 and 0 -> 2 -> 3 of weights 3, 2 and 1, 5."""
    best, along = BEST[name]
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], [3, 1, 2, 5], shape=(4, 4)).astype(dtype)
    # edges by slots, 0 -> 1, 0 -> 2, 1 -> 3, 2 -> 3
    a, b, c, d = np.asarray(A.data).astype(float)
    want = [a, b, best(along(a, c), along(b, d))]
    for x in (
        jsp.closure(A, name, start=0).x,
        jax.jit(lambda A, start: jsp.closure(A, name, start=start).x)(A, 0),
    ):
        assert x.dtype == A.dtype and np.asarray(x[1:]).astype(float).tolist() == want


@pytest.mark.parametrize("name", BEST)
@pytest.mark.parametrize("dtype", ("int32", "bool"))
def test_an_edge_that_moves_alone_keeps_its_value(name, dtype):
    """Its partner is the one of the semiring, which integers hold as their extreme."""
    values = jnp.array([0, 3]).astype(dtype)
    A = jsp.automata.automaton([0, 1], [1, 2], [1, 2], [0, 7], values, final=2)
    B = jsp.automata.automaton([0], [1], [7], data=values[1:], final=1)
    assert jsp.automata.compose(A, B, name).data.tolist() == values.tolist()
