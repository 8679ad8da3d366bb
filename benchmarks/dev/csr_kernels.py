"""The kernels straight from a CSR in one shape after another: microseconds in a profile on a GPU.

`python -m benchmarks.dev.csr_kernels delaunay21 "Stream(1, 8)" "Lanes(4, 2, 2, ahead=True)"`; every
result is compared with SciPy's in float64. Without a shape: the one that the kernels choose.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools

import jax
import jax.numpy as jnp
import numpy as np

from pallas_kernels.products.spmv import csr_spmv
from pallas_kernels.products.spmv_vjp import HOT, csr_vjp
from pallas_kernels.rows.lanes import Lanes
from pallas_kernels.rows.stream import Stream
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring

from .. import suite
from .gradient_kernels import kernels

F = np.float32
PLUS_TIMES = ScalarSemiring.of(lambda a, b: a * b, lambda a, b: a + b, 0.0, F)


def product(A, x, w, **options):
    """A x by the kernel."""
    options.pop("hot")
    return {"product": csr_spmv(*A, x, semiring=PLUS_TIMES, **options)}


def slopes(A, x, w, values=True, vector=True, hot=None, **options):
    """The derivatives of w A x by the kernel; hot: of `HOT`, so many columns."""
    operands = {"x": x if values else None, "data": A[2] if vector else None}
    hot = 0 if hot is None else hot[not values]
    found = csr_vjp(*A[:2], w, x.shape[0], **operands, hot=hot, **options)
    named = dict(zip(("values", "vector"), found, strict=True))
    return {name: value for name, value in named.items() if value is not None}


PROGRAMS = {
    "product": product,
    "both": slopes,
    "vector": functools.partial(slopes, values=False),
    "values": functools.partial(slopes, vector=False),
}


def main() -> None:
    """Prints one line a program and shape: microseconds of its kernels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph")
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--by-degree", action="store_true", help="columns by falling degree")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    A = suite.get(args.graph).matrix()
    n, hot = A.shape[0], None
    if args.by_degree:
        order = np.argsort(-np.bincount(A.indices, minlength=n), kind="stable")
        A, hot = A[:, order].tocsr(), HOT
    x, w = (np.random.default_rng(seed).random(n, F) for seed in (0, 1))
    csr = A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data.astype(F)
    arrays = jax.tree.map(jnp.asarray, (csr, x, w))
    exact = A.astype(np.float64)
    rows = np.repeat(np.arange(n), np.diff(A.indptr))
    want = {"product": exact @ x, "vector": exact.T @ w, "values": w[rows] * x[A.indices]}
    shapes = {text: _shape(text) for text in args.shapes or [""]}
    todo = [(name, text) for name in args.programs for text in shapes]

    def compiled(case):
        name, text = case
        call = functools.partial(PROGRAMS[name], shape=shapes[text], hot=hot)
        return jax.jit(call).lower(*arrays).compile()

    with concurrent.futures.ThreadPoolExecutor() as pool:
        programs = list(pool.map(compiled, todo))
    print(f"{args.graph}: {n:,} rows, {A.nnz:,} entries")
    for (name, text), program in zip(todo, programs, strict=True):
        for part, value in program(*arrays).items():
            np.testing.assert_allclose(value, want[part], rtol=1e-4, atol=1e-4)
        best = min(_microseconds(program, arrays) for _ in range(args.runs))
        print(f"  {name:10} {text:30} {best:8.1f} us", flush=True)


def _shape(text: str):
    return eval(text, {"Lanes": Lanes, "Stream": Stream}) if text else None


def _microseconds(program, arrays) -> float:
    found = kernels(lambda: jax.block_until_ready(program(*arrays)))
    return sum(us for _, us in found.values())


if __name__ == "__main__":
    main()
