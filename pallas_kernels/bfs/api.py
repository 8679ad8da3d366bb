"""Breadth-first search: levels and parents in one launch (`low_degree.py`, `any_degree.py` hold the
two kernels).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..layouts.adjacency import Adjacency
from ..simt.device import resident_ctas, target
from ..simt.launch import launch
from ..simt.primitives import Simt
from ..simt.typed import Arrays
from ..tuning import constants
from . import any_degree, low_degree
from .problem import BFSConfig, Problem


def default_bfs_config(n: int, *, low_degree: bool, quads: int = 3) -> BFSConfig:
    """Config from the sizes and the device. The visited bits go to shared memory if they fit there
    together with the queues; if not, frontiers of some thousands of vertices lie in queues of all
    CTAs. quads: of a row, for small degrees.
    """
    if not low_degree:
        warps = resident_ctas() * BFSConfig.threads // 32
        unroll = 4 if _words(n) >= 8 * warps else 1
        return BFSConfig(unroll=unroll, alpha=constants().bfs_alpha)
    if bits_in_shared(n, BFSConfig.queue) + 4 * BFSConfig.queue <= free_words():
        return BFSConfig()
    alone = {"shared_bits": False, "solo_in": 256, "solo_out": 384}
    return BFSConfig(threads=512 if quads > 1 else 256, local_most=1 << 14, **alone)


def bfs(
    graph: Adjacency,
    source: jax.Array,
    *,
    prepared: dict[str, jax.Array] | None = None,
    symmetric: bool = True,
    targets: jax.Array | None = None,
    stop: Callable | None = None,
    parents: bool = True,
    config: BFSConfig | None = None,
) -> tuple[jax.Array, jax.Array | None, jax.Array, jax.Array]:
    """(levels int32[n], parents int32[n] or None, num_levels int32, status int32) of a search from
    `source`.

    levels[v] is the number of edges on a shortest path from source to v, -1 if v is unreached;
    parents[v] is the vertex before v on one of them (the source its own, unreached -1); num_levels
    counts the levels that hold a vertex.

    graph: int32 arrays; without those of the reversed graph a symmetric graph is pulled from its
    own rows, any other graph is only pushed. prepared: what `prepare_bfs` computed once. targets
    int32[k] and stop(level, reached, unchanged): the search ends after the level where stop is
    true; it gets the level just finished (0: the source alone), a tuple of k booleans and whether
    the level found nothing, as kernel values that know & | ~ and comparisons with numbers. A source
    that is no vertex reaches nothing.
    """
    n = graph.n
    prepared = prepared or {}
    low = "adjacency" in prepared
    quads = prepared["adjacency"].shape[1] // 4 if low else 0
    config = config or default_bfs_config(n, low_degree=low, quads=quads)
    targets = jnp.zeros(0, jnp.int32) if targets is None else jnp.atleast_1d(targets)
    fixed: dict[str, Any] = {"n": n, "nnz": max(graph.indices.shape[0], 1), "words": _words(n)}
    fixed |= {"parents": parents, "stop": stop, "targets": targets.shape[0]}
    c = Problem(**dataclasses.asdict(config) | fixed)
    operands = {"source": jnp.atleast_1d(source), "targets": targets}
    operands = {name: x.astype(jnp.int32) for name, x in operands.items()}
    outputs = {"levels": n} | ({"parents": n} if parents else {})
    if low:
        c, more, workspace, shared = _low_degree(c, prepared)
    else:
        c, more, workspace, shared = _any_degree(c, graph, prepared, symmetric)

    def kernel(k: Simt, m: Arrays):
        levels, ok = (low_degree if low else any_degree).Search(k, c, m).run()
        k.results(m, num_levels=levels)
        return ok

    out = launch(
        kernel,
        operands | more,
        outputs | workspace | {"num_levels": (), "status": ()},
        **c.form(),
        shared_words=shared,
        name="bfs_low_degree" if low else "bfs_any_degree",
    )
    return out["levels"], out.get("parents"), out["num_levels"], out["status"]


def _words(n):
    """32-bit words of a bitmap of n bits, a multiple of 4 for 16-byte accesses."""
    return -(-n // 128) * 4


def bits_in_shared(n, queue):
    """Words of a bitmap in shared memory: a power of two, so that divisions are shifts, if that
    fits.
    """
    power = max(4, 1 << (_words(n) - 1).bit_length())
    return power if power + 4 * queue <= free_words() else _words(n)


def free_words():
    """Words of shared memory for bits and queues."""
    return target().shared_bytes // 4 - 64


def _low_degree(c: Problem, prepared):
    """(problem, operands, workspace, words of shared memory) of `low_degree.py`."""
    adjacency = prepared["adjacency"]
    words = bits_in_shared(c.n, c.queue) if c.shared_bits else c.words
    quads, linked = adjacency.shape[1] // 4, adjacency.shape[0] > c.n
    c = dataclasses.replace(c, quads=quads, linked=linked, words=words)
    shared = c.entry * c.queue + (words if c.shared_bits else 0) + 4
    return c, {"adjacency": adjacency}, {"visited": words, "log": c.entry * c.n}, shared


def _any_degree(c: Problem, graph: Adjacency, prepared, symmetric):
    """(problem, operands, workspace, words of shared memory) of `any_degree.py`."""
    operands = {"indptr": graph.indptr, "indices": graph.indices}
    if symmetric and graph.in_indices is None:
        graph = graph.in_both_directions(symmetric)
        operands["indices"] = prepared.get("in_indices", graph.indices)
    pull = graph.in_indices is not None
    c = dataclasses.replace(c, pull=pull, capacity=c.n + c.nnz // c.span + 1)
    if pull:
        pulled = prepared.get("in_indices", graph.in_indices)
        operands |= {"in_indptr": graph.in_indptr, "in_indices": pulled}
        operands |= {name: prepared[name] for name in ("first", "isolated") if name in prepared}
    workspace = {"visited": 2 * c.words, "queue": 8 * c.capacity}
    return c, operands, workspace, 16 + 4 * c.buffer + c.threads
