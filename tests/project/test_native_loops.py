"""On a CPU the loops over entries are native, and none copies an array in every turn.

A copy of n numbers for each entry makes a loop of linear cost quadratic: results stay right, so
only the compiled text shows it.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core.compat import jaxlib_version
from jaxspv._core.platforms import Situation, inside
from jaxspv.algebra import semirings

N, M = 1009, 3000  # vertices, edges; an array of N or more numbers is a long one
ENDS = np.random.default_rng(0).integers(0, N, (2, M))
DIRECTED = jsp.from_edges(*ENDS, np.ones(M, np.float32), shape=(N, N))
BOTH = jsp.from_edges(*np.hstack([ENDS, ENDS[::-1]]), np.ones(2 * M, np.float32), shape=(N, N))
VECTOR = jsp.vector_from_entries(np.arange(0, N, 7), np.ones(145, np.float32), N)
DENSE, ALL, COLUMNS = jnp.ones(N), jnp.ones(N, bool), jnp.ones((N, 4))
START = jnp.full(N, jnp.inf).at[0].set(0.0)
FEW = jnp.arange(4)


def total(y):
    return jnp.sum(getattr(y, "data", y) ** 2)


def slopes(multiply):
    """The derivative of a product in the values of A."""
    return lambda A, *operands: jax.grad(
        lambda d: total(multiply(A.with_data(d), *operands))
    )(A.data)  # fmt: skip


def spmspv(name):
    return lambda A, x: jsp.vxm(x, A, getattr(semirings, name))


FARTHEST = semirings.semiring(
    jsp.monoid(lambda x, y: (jnp.maximum(x[0], y[0]), x[1] + y[1]), (-jnp.inf, 0.0)),
    lambda x, y: (x[0] + y[0], x[1] * y[1]),
)


def of_tuples(A, x):
    return jsp.mxv(A.with_data((A.data, A.data)), (x, x), FARTHEST)[0]


# name: (call, matrix, other operands, how many loops may be dispatched or copy: those of few turns,
# over rounds, levels, sources, steps of a bisection or of random numbers)
CASES = {
    **{f"vxm {s}": (spmspv(s), DIRECTED, (VECTOR,), 0) for s in ("plus_times", "min_plus")},
    "vxm any_secondi": (spmspv("any_secondi"), DIRECTED, (VECTOR,), 0),
    "vxm log_plus": (spmspv("log_plus"), DIRECTED, (VECTOR,), 0),
    "vxm mask": (lambda A, x, m: jsp.vxm(x, A, mask=m), DIRECTED, (VECTOR, ALL), 0),
    "mxv": (lambda A, x: jsp.mxv(A, x), DIRECTED, (VECTOR,), 0),
    "mxv mask": (lambda A, x, m: jsp.mxv(A, x, mask=m), DIRECTED, (VECTOR, ALL), 0),
    "mxv csc": (lambda A, x: jsp.mxv(A, x), DIRECTED.asformat("csc"), (VECTOR,), 0),
    "tuples": (of_tuples, DIRECTED, (DENSE,), 0),
    "tuples csc": (of_tuples, DIRECTED.asformat("csc"), (DENSE,), 0),
    "vxm slopes": (slopes(lambda A, x: jsp.vxm(x, A)), DIRECTED, (VECTOR,), 0),
    "spmv slopes": (slopes(lambda A, x: A @ x), DIRECTED, (DENSE,), 0),
    "winners": (slopes(lambda A, x: jsp.mxv(A, x, semirings.min_plus)), DIRECTED, (DENSE,), 0),
    "sddmm": (lambda A, X: jsp.sddmm(A, X, X), DIRECTED, (COLUMNS,), 0),
    "mxm slopes": (slopes(lambda A: jsp.mxm(A, A, nse=20_000)), DIRECTED, (), 1),
    "intersection": (lambda A: jsp.ewise_mult(A, A.T, jsp.operators.times), DIRECTED, (), 1),
    "turning": (lambda A: A.T.asformat("csr"), DIRECTED, (), 0),
    "fixpoint": (
        lambda A, x: jsp.fixpoint(A, x, semirings.min_plus, monotone=True),
        DIRECTED,
        (START,),
        1,
    ),
    "strong components": (jsp.strongly_connected_components, DIRECTED, (), 4),
    "triangles": (jsp.triangle_count, BOTH, (), 1),
    "squares": (jsp.square_clustering, BOTH, (), 3),
    "independent set": (lambda A: jsp.maximal_independent_set(jax.random.key(0), A), BOTH, (), 2),
    "labels": (jsp.label_propagation, DIRECTED, (), 1),
    "similarity": (lambda A: jsp.similarity(A, FEW, FEW), BOTH, (), 0),
}  # fmt: skip


def computations(text):
    """The computations of a compiled text by name, each a list of lines."""
    found, lines = {}, []
    for line in text.splitlines():
        if line.endswith("{") and (name := re.match(r"(?:ENTRY )?%?([\w.-]+) ", line)):
            lines = found.setdefault(name[1], [])
        lines.append(line)
    return found


def called(line):
    """The computations that an instruction calls."""
    listed = re.findall(r"(?:calls|to_apply|body|\w+_computations?)=\{?((?:,? ?%?[\w.-]+)+)", line)
    return re.findall(r"[\w.-]+", " ".join(listed))


def loops(text):
    """(native, copies of long arrays in a turn, what it belongs to) of each loop."""
    parts = computations(text)
    calls = [line for lines in parts.values() for line in lines if "small_call" in line]
    native = {name for line in calls for name in called(line)}
    for name, lines in parts.items():
        for line in lines:
            if " while(" not in line or re.search("searchsorted|_shuffle", line):  # of JAX
                continue
            seen, todo, copies = set(), [re.search(r"body=%?([\w.-]+)", line)[1]], []
            while todo:
                if (part := todo.pop()) in seen or part not in parts:
                    continue
                seen.add(part)
                for inner in parts[part]:
                    shape = re.search(r"= \w+\[([\d,]+)\]\S* copy(?:-start)?\(", inner)
                    if shape and max(map(int, shape[1].split(","))) >= N - 1:
                        copies.append(inner)
                    todo += [] if " while(" in inner else called(inner)
            of = re.search(r'op_name="([^"]*)"', line)
            yield name in native, copies, of[1] if of else name


def test_what_counts_as_a_copy():
    """A loop that reads an array behind a write of it must copy: what the test below looks for."""

    def turn(i, c):
        x, y = c
        return x.at[i % 7].set(y[3]), x

    x = jnp.zeros(N)
    text = jax.jit(lambda x: jax.lax.fori_loop(0, 9, turn, (x, x + 1))).lower(x).compile().as_text()
    assert any(copies for _, copies, _ in loops(text))


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="about the code that XLA makes for CPU")
@pytest.mark.parametrize("name", CASES)
def test_no_native_loop_copies_an_array(name):
    call, A, operands, rounds = CASES[name]
    with inside(Situation(("cpu", "xla"), portable=True)):  # C++ serves before loops
        text = jax.jit(call).lower(A, *operands).compile().as_text()
    found = list(loops(text))
    if jaxlib_version() < (0, 11):  # newer ones have instructions in place of some of these loops
        assert sum(native for native, _, _ in found) > 0
    slow = [(of, copies) for native, copies, of in found if copies or not native]
    assert len(slow) <= rounds, slow
