"""R-MAT graphs made on the devices of a mesh, searched and ranked; each search is certified.

    python -m benchmarks.traversal.made_on_mesh [21,22 25,44 ...] [--runs 5]

Arguments: SCALE,EDGE_FACTOR. No device ever holds a whole graph. The certificate: the level of the
source is 0, of every other vertex one more than the least of its neighbours', which only those of a
search are. Several devices on a CPU: XLA_FLAGS=--xla_force_host_platform_device_count=4.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from .mesh_costs import predicted


def is_search(G: Any, levels: Any, source: Any) -> Any:
    """Whether these are the levels of a search of a symmetric graph."""
    level = jnp.where(levels < 0, jnp.inf, levels.astype(jnp.float32))
    nearest = jsp.mxv(G, level, "min_second") + 1
    right = (nearest == level) & (level > 0)
    return jnp.all(jnp.where(jnp.arange(G.n) == source, level == 0, right))


def entries_of(G: Any) -> np.ndarray:
    """The number of entries of each device."""
    last = jax.jit(lambda G: G.indptr[..., -1], out_shardings=G.part.replicated)
    return np.asarray(last(G)).astype(np.int64)


def timed(call: Callable[..., Any], *operands: Any, runs: int) -> tuple[Any, float]:
    """The result, and the median of the milliseconds after the first call."""
    result, took = jax.block_until_ready(call(*operands)), []
    for _ in range(runs):
        start = time.perf_counter()
        jax.block_until_ready(call(*operands))
        took.append(1e3 * (time.perf_counter() - start))
    return result, statistics.median(took)


def peak() -> str:
    """The most that a device has held since the process began, where devices tell."""
    sent = [device.memory_stats() or {} for device in jax.local_devices()]
    return f"{max(t.get('peak_bytes_in_use', 0) for t in sent) / 1e9:.1f} GB"


def model(call: str, n: int, entries: int, rounds: int) -> str:
    """What the model of costs says of GPUs, in each form; nothing elsewhere."""
    if jax.default_backend() != "gpu":
        return ""
    sent = predicted(call, n, entries, rounds, jax.device_count())
    return "".join(f", {form.split('_')[0]} model {ms:.2f} ms" for form, ms in sent.items())


def measure(mesh: Any, scale: int, factor: int, runs: int) -> None:
    """Prints what one graph takes."""
    start = time.perf_counter()
    G = jax.block_until_ready(jsp.sharding.shard_rmat(jax.random.key(0), scale, factor, mesh=mesh))
    made, entries = time.perf_counter() - start, entries_of(G)
    print(f"rmat{scale}-{factor}: {entries.sum():,} entries made in {made:.2f} s, peak {peak()}")
    print(f"  the fullest device over the mean: {entries.max() / entries.mean():.4f}")
    degrees = jax.jit(lambda G: jsp.reduce(G, axis=1).todense())(G)
    source = jnp.argmax(degrees).astype(jnp.int32)
    search = jax.jit(lambda G, s: jsp.bfs(G, s, parents=False).levels)
    levels, ms = timed(search, G, source, runs=runs)
    if not bool(jax.jit(is_search)(G, levels, source)):
        raise AssertionError(f"rmat{scale}-{factor}: the levels are not those of a search")
    deep, size = int(levels.max()) + 1, (G.n, int(entries.sum()))
    print(f"  bfs {ms:.2f} ms, {deep} levels, certified{model('bfs', *size, deep)}", flush=True)
    ranks, ms = timed(jax.jit(jsp.pagerank), G, runs=runs)
    rounds = int(ranks.iterations)
    said = f"{rounds} iterations, peak {peak()}{model('pagerank', *size, rounds)}"
    print(f"  pagerank {ms:.2f} ms, {said}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """The graphs one after the other, over all devices of this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", default=["21,22"], metavar="SCALE,EDGE_FACTOR")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args(argv)
    auto = jax.sharding.AxisType.Auto
    mesh = jax.make_mesh((jax.device_count(),), ("d",), axis_types=(auto,))
    for graph in args.graphs:
        scale, factor = map(int, graph.split(","))
        measure(mesh, scale, factor, args.runs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
