"""The types that an operation promises are those that each of its forms gives."""

import jax
import jax.numpy as jnp
import pytest
from test_explain import CALLS, CASES, GRAPHS

import jaxspv as jsp
from jaxspv._core.operation import OPERATIONS
from jaxspv.explaining import equations


def given_by(op, impl, call, types):
    """The types of a form's results."""
    structs = [jax.ShapeDtypeStruct(*t) for t in types]

    def run(*leaves):
        return impl.run(*jax.tree.unflatten(call.tree, leaves), **dict(call.static))

    return [(v.shape, v.dtype) for v in jax.tree.leaves(jax.eval_shape(run, *structs))]


def check(fn, *args):
    found = 0
    for equation in equations(jax.make_jaxpr(fn)(*args).jaxpr):
        op = OPERATIONS.get(equation.primitive)
        call = equation.params.get("call")
        if op is None:
            continue
        assert len(repr(call)) < 200 and " at 0x" not in repr(call), "one readable equation"
        if op.types is None or call.lanes:
            continue
        types = tuple((v.aval.shape, v.aval.dtype) for v in equation.invars)
        promised = [(v.aval.shape, v.aval.dtype) for v in equation.outvars]
        for impl in op.planned(call, types).chosen:
            if impl.backend != "pallas":
                assert given_by(op, impl, call, types) == promised, (op, impl)
                found += 1
    return found


@pytest.mark.parametrize("call", [c for c, graph in CASES if graph == "csr"])
def test_forms_give_what_is_promised(call):
    check(CALLS[call], GRAPHS["csr"]())


DTYPES = ["float16", "bfloat16", "int8", "uint32", "bool"]


@pytest.mark.fast
@pytest.mark.parametrize("dtype", DTYPES)
def test_of_every_dtype(dtype):
    A = GRAPHS["csr"]().astype(dtype)
    x = jnp.ones(A.shape[1], dtype)
    v = jsp.vector_from_entries([1, 5], jnp.ones(2, dtype), 12)
    for semiring in ("plus_times", "min_plus", "or_and", "plus_pair", "any_secondi"):
        if semiring == "min_plus" and dtype == "bool":
            continue
        assert check(lambda A, x, s=semiring: jsp.mxv(A, x, s), A, x)
        assert check(lambda A, v, s=semiring: jsp.vxm(v, A, s), A, v)
        assert check(lambda A, s=semiring: jsp.mxm(A, A, s, nse=144), A)
        if semiring != "any_secondi":  # an array has no positions
            assert check(lambda A, x, s=semiring: jsp.mxm(A, x[:, None], s), A, x)
    assert check(lambda A: jsp.bfs(A, 0), A)
