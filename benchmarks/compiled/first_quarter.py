"""A user's first quarter of an hour: sixteen calls in a fresh process, the seconds of each.

    python -m benchmarks.compiled.first_quarter [--lower cuda] [--programs]

The bundled road network of Minnesota, the default device, nothing cached. Wall and processor time
to the end of each call, and how many programs XLA compiled for it; the import stands before them.
`--programs`: below each call the programs, and what compiling each took.
`--lower`: nothing runs; each call is jitted, traced and lowered for a platform, which needs no
device of it.
"""

from __future__ import annotations

import argparse
import time

CLOCK = time.perf_counter(), time.process_time()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import jaxspv as jsp  # noqa: E402


def far(A):
    d = jsp.sssp(A, 0).distances
    return jnp.where(d < jnp.inf, d, 0).sum()


def main() -> None:
    """Prints a row for each call, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lower", help="trace and lower for this platform instead, as cuda")
    parser.add_argument("--programs", action="store_true", help="name the programs of each call")
    options = parser.parse_args()
    rows = [("import", time.perf_counter() - CLOCK[0], time.process_time() - CLOCK[1], 0)]
    names = {}
    compiled = []

    def listen(event, seconds, **more):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(f"{more.get('fun_name')} {seconds:.2f}")

    jax.monitoring.register_event_duration_secs_listener(listen)

    def call(name, fn, *args):
        compiled.clear()
        before = time.perf_counter(), time.process_time()
        if options.lower and name not in ("read", "prepare"):
            jax.jit(fn).trace(*args).lower(lowering_platforms=(options.lower,))
            out = None
        else:
            out = jax.block_until_ready(fn(*args))
        after = time.perf_counter(), time.process_time()
        rows.append((name, after[0] - before[0], after[1] - before[1], len(compiled)))
        names[name] = ", ".join(compiled)
        return out

    A = call("read", lambda: jsp.read_mtx(jsp.bundled("minnesota")))
    G = call("prepare", lambda: jsp.prepare(A, for_=("bfs", "sssp", "pagerank")))
    n = A.shape[0]
    x = jnp.ones(n)
    own = jsp.semiring(jsp.monoids.max_, lambda a, b: jnp.minimum(a, b) * 1)
    call("bfs", lambda G: jsp.bfs(G, 0), G)
    call("jitted bfs", jax.jit(lambda G: jsp.bfs(G, 1).levels), G)
    call("vmap of sssp", lambda G: jax.vmap(lambda s: jsp.sssp(G, s).distances)(jnp.arange(8)), G)
    call("vxm", lambda A: jsp.vxm(x, A, own), A)
    call("gradient of sssp", lambda A: jsp.grad(far)(A).data, A)
    call("pagerank", lambda G: jsp.pagerank(G), G)
    call("pagerank again", lambda G: jsp.pagerank(G), G)
    call("A @ x", lambda A: A @ x, A)
    call("A @ A", lambda A: jsp.mxm(A, A, nse=40_000) if options.lower else A @ A, A)
    call("components", lambda A: jsp.connected_components(A), A)
    call("triangles", lambda A: jsp.triangle_count(A), A)
    call("betweenness", lambda A: jsp.betweenness_centrality(A, sources=jnp.arange(8)), A)
    call("louvain", lambda A: jsp.louvain(A), A)
    call("core numbers", lambda A: jsp.core_number(A), A)
    rows.append(("all", *(sum(row[k] for row in rows) for k in (1, 2, 3))))
    where = f"{jax.default_backend()}, JAX {jax.__version__}"
    print(f"{'call':18} {'wall':>8} {'processor':>10} {'programs':>9}  {where}")
    for name, wall, processor, programs in rows:
        print(f"{name:18} {wall:8.2f} {processor:10.2f} {programs:9}")
        if options.programs and names.get(name):
            print(f"    {names[name]}")


if __name__ == "__main__":
    main()
