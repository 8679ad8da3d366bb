"""The backward pass takes at most three times the memory of the forward pass, compiled on a CPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

N, PER_ROW = 2000, 50  # large enough that what does not depend on the entries is little


def problem():
    rng = np.random.default_rng(0)

    def matrix():
        row, col = np.repeat(np.arange(N), PER_ROW), rng.integers(0, N, N * PER_ROW)
        return jsp.from_edges(row, col, rng.random(N * PER_ROW, np.float32), shape=(N, N))

    v = jsp.vector_from_entries(np.arange(0, N, 10), np.ones(N // 10, np.float32), N)
    return matrix(), matrix(), jnp.ones(N), v


def corner(A):
    return jsp.extract(A, slice(100), slice(100), nse=500)


# name -> function of (A, B, x, a SparseVector, semiring), differentiated by the values of A and x
OPERATIONS = {
    "mxv": lambda A, B, x, v, s: jsp.mxv(A, x, s),
    "vxm": lambda A, B, x, v, s: jsp.vxm(x, A, s),
    "vxm sparse": lambda A, B, x, v, s: jsp.vxm(v.with_data(x[: v.nse]), A, s),
    "mxm": lambda A, B, x, v, s: jsp.mxm(A, B, s, nse=N * N // 2),
    "mxm masked": lambda A, B, x, v, s: jsp.mxm(A, B, s, mask=jsp.structure(A)),
    "ewise_add": lambda A, B, x, v, s: jsp.ewise_add(A, B, s.add),
    "ewise_mult": lambda A, B, x, v, s: jsp.ewise_mult(A, B, s.mul),
    "apply": lambda A, B, x, v, s: jsp.apply(A, jnp.tanh),
    "select": lambda A, B, x, v, s: jsp.select(A, jsp.operators.tril),
    "reduce": lambda A, B, x, v, s: jsp.reduce(A, s.add, axis=1),
    "transpose": lambda A, B, x, v, s: A.T.asformat("csr"),
    "extract": lambda A, B, x, v, s: jsp.extract(A, jnp.arange(0, N, 3), None, nse=A.nse),
    "assign": lambda A, B, x, v, s: jsp.assign(A, B, accum=s.add),
    "kron": lambda A, B, x, v, s: jsp.kron(corner(A), corner(B), s.mul, nse=N * PER_ROW),
}
QUICK = [("mxv", "csr", s) for s in ("plus_times", "min_plus", "log_plus")]
QUICK += [("mxm masked", "csr", "plus_times")]
LONG = [
    (op, f, s)
    for op in OPERATIONS
    for f in ("coo", "csr", "csc")
    for s in ("plus_times", "min_plus", "log_plus")
]


@pytest.mark.parametrize(
    "operation,format,semiring",
    QUICK + [pytest.param(*case, marks=pytest.mark.slow) for case in LONG if case not in QUICK],
)
def test_backward_takes_at_most_three_times_the_memory_of_forward(operation, format, semiring):
    if jax.default_backend() != "cpu":
        pytest.skip("programs of a CPU are weighed")
    A, B, x, v = problem()
    A, B, s = A.asformat(format), B.asformat(format), getattr(jsp.semirings, semiring)

    def forward(data, x, A, B):
        y = OPERATIONS[operation](A.with_data(data), B, x, v, s)
        return getattr(y, "data", y)

    def loss(data, x, A, B):
        return jnp.sum(jnp.sin(forward(data, x, A, B)))

    def size(program):
        memory = jax.jit(program).lower(A.data, x, A, B).compile().memory_analysis()
        return (
            memory.temp_size_in_bytes + memory.output_size_in_bytes + memory.argument_size_in_bytes
        )

    backward, before = size(jax.grad(loss, (0, 1))), size(forward)
    assert backward <= 3 * before, (backward, before)
