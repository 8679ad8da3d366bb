"""Single-source shortest paths, non-negative weights, in one launch (see `rounds.py`)."""

import dataclasses
import math
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..layouts.adjacency import is_low_degree
from ..simt.device import resident_ctas
from ..simt.launch import launch
from . import any_degree, low_degree, rounds


@dataclasses.dataclass(frozen=True)
class Config:
    """How a search is spread over the GPU; `default_config` chooses it."""

    ctas: int = 0  # 0: as many as are resident
    threads: int = 1024
    # low_degree: edges that a warp follows before the round ends, 1 for queues beyond hop_most
    hops: int = 16
    hop_most: int = 65536
    together: int = 3  # quads of a row whose edges are relaxed together
    # any_degree: edges of a range, strides of 32 edges in flight together, vertices buffered in
    # shared memory
    span: int = 128
    unroll: int = 4
    near_buffer: int = 8192
    far_buffer: int = 16384
    # any_degree: long ranges that a warp takes in one step; a round is small below so many edges a
    # warp, and so is far below so many vertices a warp
    taken: int = 8
    small_round: int = 16
    small_far: int = 16


def default_config(n: int, nnz: int, *, low_degree: bool) -> Config:
    """Config from the sizes. Rows of more than one quad make a hop longer."""
    return Config(hops=8 if low_degree and nnz > 4 * n else 16)


def delta_of(mean, n, largest, entries, dtype):
    """f * mean weight / mean degree, in the dtype of the weights; 1 where no weight is finite.

    f is 16384 for graphs of small degree whose mean is at most 4 (roads, grids: nearly a single
    bucket), 64 for the others of small degree (triangulations). For graphs of any degree it is 4,
    but the width is 0.2 to 3 times the mean weight: the kernel doubles it where rounds have few
    edges, and for good (`later`) in long searches. n, largest, entries: vertices, the largest
    degree, the sum of all.
    """
    dtype = np.dtype(dtype)
    if mean is None:
        return dtype.type(1)
    degree = max(entries, 1) / n
    over = min(max(4 / degree, 0.2), 3)
    if is_low_degree(n, largest, entries):
        over = (16384 if degree <= 4 else 64) / degree
    width = over * mean
    if not np.issubdtype(dtype, np.integer):
        return dtype.type(width or 1.0)
    return dtype.type(np.clip(width, 1, np.iinfo(dtype).max))


def later(n: int, entries: int) -> int:
    """How often the width of `delta_of` is doubled in long searches: to 16 * mean weight / mean
    degree, at most twice."""
    over = 16 * n / max(entries, 1) / 0.2
    return min(max(math.floor(math.log2(over)), 0), 2)


def sssp(
    indptr: jax.Array,
    indices: jax.Array,
    weights: jax.Array,
    source: jax.Array,
    delta: jax.Array,
    *,
    prepared: dict[str, jax.Array] | None = None,
    symmetric: bool = False,
    targets: jax.Array | None = None,
    limit: Callable[..., Any] | None = None,
    parents: bool = True,
    config: Config | None = None,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array | None, jax.Array, jax.Array]:
    """(distances[n], parents int32[n] or None, steps int32, status int32): d[source] = 0, d[v] =
    min of d[u] + w over u -> v.

    indptr int32[n + 1], indices int32[nnz], weights float32[nnz] or int32[nnz], none negative or
    NaN: edges v -> indices[i], indptr[v] <= i < indptr[v + 1]. delta: the width of a bucket, of the
    dtype of weights (`delta_of`); inf or iinfo.max: a single bucket, which is Bellman-Ford on
    the vertices whose distance fell. prepared: what `prepare_sssp` computed once. Unreached: inf,
    or iinfo.max, where integer sums end as well. float32 distances are bit-equal to Dijkstra's
    whatever delta. A source that is no vertex reaches nothing. steps counts the rounds of
    relaxation. status 0: right; otherwise a grid barrier expired and the result means nothing.

    parents: a tree of shortest paths: parents[v] is a vertex u with d[u] + w = d[v] for an edge
    u -> v, the source its own, -1 where unreached. Which one may vary from run to run.
    symmetric: every edge is there in both directions with the same weight, which makes the search
    for parents cheaper; not checked. targets int32[k] and limit(labels, infinity, minimum,
    maximum): the distances up to limit of those of the targets are right, the others are at or
    above the right ones and may lack a parent (-1); labels is a list of k values that know minimum
    and maximum.
    """
    options = {"symmetric": symmetric, "targets": targets, "limit": limit, "parents": parents}
    how = {"config": config, "interpret": interpret}
    return _search(indptr, indices, weights, source, delta, prepared, **options, **how)[:4]


def _search(
    indptr,
    indices,
    weights,
    source,
    delta,
    prepared=None,
    *,
    symmetric=False,
    targets=None,
    limit=None,
    parents=True,
    config=None,
    interpret=False,
) -> Any:
    """`sssp`, and (splits of the far queue, entries of the near queue relaxed)."""
    n, real = indptr.shape[0] - 1, weights.dtype == jnp.float32
    if not real and weights.dtype != jnp.int32:
        raise TypeError(f"weights are {weights.dtype}: the kernel takes float32 or int32")
    zero = jnp.int32(0)
    if n == 0:
        tree = jnp.zeros(0, jnp.int32) if parents else None
        return jnp.zeros(0, weights.dtype), tree, zero, zero, zero, zero
    operands = {
        "source": jnp.atleast_1d(source).astype(jnp.int32),
        "delta": jnp.atleast_1d(delta).astype(weights.dtype),
    }
    if targets is not None and targets.shape[0]:
        operands["targets"] = jnp.asarray(targets, jnp.int32)
    fixed = {"real": real, "symmetric": symmetric, "parents": parents, "limit": limit}
    graph = (indptr, indices, weights), prepared or {}
    out = run(graph, operands, config, interpret, "sssp", **fixed)
    distances = out.get("distances", out["labels"])
    if real:
        distances = lax.bitcast_convert_type(distances, jnp.float32)
    tree = out.get("parents", out["noted"]) if parents else None
    return distances, tree, *(out["summary"][j] for j in range(4))


def run(graph, operands, config, interpret, name, *, real, symmetric, parents, limit, extend=None):
    """One launch: results by name, among them summary: (rounds, status, splits, work).

    graph: ((indptr, indices, weights), prepared).
    """
    (indptr, indices, weights), prepared = graph
    n, nnz, low = indptr.shape[0] - 1, indices.shape[0], "adjacency" in prepared
    config = config or default_config(n, nnz, low_degree=low)
    c = types.SimpleNamespace(
        **dataclasses.asdict(config),
        n=n,
        later=later(n, nnz),
        real=real,
        capacity=n + nnz // config.span + 1,
        symmetric=symmetric,
        parents=parents,
        limit=limit,
        extend=extend,
        targets=operands["targets"].shape[0] if "targets" in operands else 0,
    )
    if low:
        kind, entries, adjacency = low_degree, n, prepared["adjacency"]
        c.quads, c.linked = adjacency.shape[1] // 4, adjacency.shape[0] > n
        shared = low_degree.shared_words(c)
        names = ("adjacency", "lengths", *(["rank"] if "source" in operands else []), "order")
        operands |= {x: prepared[x] for x in names if x in prepared}
    else:
        kind, entries = any_degree, 4 * c.capacity
        shared = any_degree.COUNTS + c.near_buffer + c.far_buffer + 12
        operands |= {"indptr": indptr, "indices": indices, "weights": weights}
    outputs = {"labels": n, "marks": 2 * n, "queue": 2 * entries, "far": 2 * n}
    if "order" in operands:
        outputs["distances"] = n
    if parents:
        outputs["noted"] = n if low else 2 * n
        if "order" in operands or not low:
            outputs["parents"] = n

    def kernel(k, memory):
        steps, ok, splits, work = rounds.body(k, c, memory, memory, kind)
        mine = (k.cta == 0) & (k.thread == 0)
        for j, word in enumerate((steps, 1 - ok, splits, work)):
            k.store(memory.summary, j, word, mask=mine)

    return launch(
        kernel,
        operands,
        outputs | {"summary": 4},
        optional=("rank", "order", "targets"),
        ctas=c.ctas or resident_ctas(),
        threads=c.threads,
        shared_words=shared,
        name=f"{name}_{kind.__name__.rpartition('.')[2]}",
        interpret=interpret,
    )
