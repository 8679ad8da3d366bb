"""`prepare` where the graph is: seconds cold and warm, memory of host and device, the searches.

    python -m benchmarks.dev.prepare_gpu [--scales 21 24] [--for bfs sssp pagerank mxv]

Cold: with compilation, the first time of this shape in this process; warm: the median of three
more. Host: how far the resident memory of the process rose over what it was. Device: the peak of
the allocator over the CSR's bytes (a peak is never reset: read it in a process of one purpose).
Results are compared with those of the graph that nobody prepared, or of SciPy for products.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

DAMPING, TOL = 0.85, 1e-6  # of PageRank


def resident() -> float:
    """GB of this process, now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**30


def peak() -> float:
    """GB that the device held at most, 0 where that is not told."""
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("peak_bytes_in_use", 0) / 2**30


def seconds(run, times: int = 1) -> tuple[float, object]:
    """The median of several runs, and what the last one returned."""
    taken, out = [], None
    for _ in range(times):
        del out
        start = time.perf_counter()
        out = jax.block_until_ready(run())
        taken.append(time.perf_counter() - start)
    return statistics.median(taken), out


def searches(purpose: str, source: int):
    """(search of a Graph, what of it is compared, how)."""
    return {
        "bfs": (lambda G: jsp.bfs(G, source), lambda r: r.levels, jnp.array_equal),
        "sssp": (lambda G: jsp.sssp(G, source), lambda r: r.distances, jnp.array_equal),
        "pagerank": (lambda G: jsp.pagerank(G, DAMPING, TOL), lambda r: r.scores, both_converged),
        "mxv": (lambda G: jsp.mxv(G, jnp.ones(G.n)), lambda y: y, near),
    }[purpose]


def both_converged(x, y):
    """Each is within `tol d / (1 - d)` of the limit, in L1: they may stop a step apart."""
    return jnp.sum(jnp.abs(x - y)) <= 2 * TOL * DAMPING / (1 - DAMPING)


def near(x, y):
    """Up to the rounding of float32."""
    return jnp.allclose(x, y, rtol=1e-4, atol=1e-9)


def main() -> None:
    """Prints a line a purpose and scale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", type=int, nargs="+", default=[21, 24])
    parser.add_argument(
        "--for", dest="purposes", nargs="+", default=["bfs", "sssp", "pagerank", "mxv"]
    )
    parser.add_argument("--declared", action="store_true", help="symmetry is declared, not checked")
    args = parser.parse_args()
    symmetric = True if args.declared else None
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}")
    for scale in args.scales:
        A = jax.block_until_ready(jsp.rmat(jax.random.key(0), scale).asformat("csr"))
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(A)) / 2**30
        source = int(jnp.argmax(jnp.diff(A.indptr)))
        print(f"rmat {scale}: {A.shape[0]:,} vertices, {int(A.count):,} entries, {size:.2f} GB")
        for purpose in args.purposes:
            host = resident()

            def prepare(purpose=purpose, A=A):
                return jsp.prepare(A, for_=purpose, symmetric=symmetric)

            cold, G = seconds(prepare)
            host = resident() - host
            del G
            warm, G = seconds(prepare, 3)
            run, of, equal = searches(purpose, source)
            first, found = seconds(lambda run=run, G=G: run(G))
            again, found = seconds(lambda run=run, G=G: run(G), 11)
            bare = of(run(jsp.prepare(A, for_=(), symmetric=True)))
            right = bool(equal(of(found), bare))
            print(
                f"  {purpose:8} prepare cold {cold:7.3f} s, warm {warm:7.3f} s; host +{host:5.2f} "
                f"GB, device peak {peak():6.2f} GB ({peak() / size:.1f} CSR); first call "
                f"{first:6.3f} s, then {1e3 * again:8.3f} ms; {'right' if right else 'WRONG'}",
                flush=True,
            )
            assert np.isfinite(warm)
            del G, found, bare


if __name__ == "__main__":
    main()
