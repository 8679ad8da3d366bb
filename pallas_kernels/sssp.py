"""Single-source shortest paths, non-negative weights, in one launch (see `_sssp_rounds.py`)."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from pallas_kernels import _sssp_narrow, _sssp_rounds, _sssp_wide
from pallas_kernels._launch import launch, programs_for


@dataclasses.dataclass(frozen=True)
class Config:
    """How a search is spread over the GPU; `default_config` chooses it."""

    programs: int = 132
    threads: int = 1024
    # narrow kernel: near queue in the shared memory of program 0; it works alone on queues of up to
    # solo_in vertices until they have more than solo_out (at most `queue`), and splits far queues
    # of up to solo_far; solo_in = 0: never
    queue: int = 8192
    solo_in: int = 512
    solo_out: int = 768
    solo_far: int = 4096
    # edges a warp follows from its part of the queue before the next round, for queues up to
    # hop_most
    hops: int = 4
    hop_most: int = 16384
    pretest: bool = False  # load the label before the atomic that lowers it
    # wide kernel: edges of a range, 32-edge pieces a warp relaxes at once, vertices buffered in
    # shared memory
    span: int = 128
    unroll: int = 4
    near_buffer: int = 8192
    far_buffer: int = 16384


def default_config(n: int, nnz: int, *, narrow: bool, device_kind: str = "NVIDIA H200") -> Config:
    """Config from the sizes alone (pure)."""
    del n, nnz
    if narrow:
        return Config(programs=programs_for(device_kind))
    return Config(programs=programs_for(device_kind), solo_in=0)


def default_delta(indptr, weights):
    """Width of a bucket, in the dtype of the weights: 32 (a warp) * mean weight / mean degree."""
    weights = np.asarray(weights)[: int(indptr[-1])]
    n = len(indptr) - 1
    if not len(weights) or not n:
        return weights.dtype.type(1)
    real = (
        weights[weights < np.inf]
        if weights.dtype.kind == "f"
        else weights[weights < np.iinfo(weights.dtype).max]
    )
    width = 32 * real.mean(dtype=np.float64) * n / len(weights) if len(real) else 1.0
    if weights.dtype.kind == "f":
        return weights.dtype.type(width or 1.0)
    return weights.dtype.type(min(max(width, 1), np.iinfo(weights.dtype).max))


def sssp(
    indptr: jax.Array,
    indices: jax.Array,
    weights: jax.Array,
    source: jax.Array,
    delta: jax.Array,
    *,
    prepared: dict[str, jax.Array] | None = None,
    config: Config | None = None,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """(distances[n], steps int32, status int32): d[source] = 0, d[v] = min of d[u] + w over u -> v.

    indptr int32[n + 1], indices int32[nnz], weights float32[nnz] or int32[nnz], none negative or
    NaN: edges v -> indices[i], indptr[v] <= i < indptr[v + 1]. delta: the width of a bucket, of the
    dtype of weights (`default_delta`); inf or iinfo.max: a single bucket, which is Bellman-Ford on
    the vertices whose distance fell. prepared: what `prepare_sssp` computed once. Unreached: inf,
    or iinfo.max, where integer sums end as well. float32 distances are bit-equal to Dijkstra's
    whatever delta. A source that is no vertex reaches nothing. steps counts the rounds of
    relaxation. status 0: right; otherwise a grid barrier expired and the result means nothing.
    """
    return _search(indptr, indices, weights, source, delta, prepared, config, interpret)[:3]


def _search(indptr, indices, weights, source, delta, prepared, config, interpret):
    """`sssp`, and (splits of the far queue, entries of the near queue relaxed)."""
    n, nnz = indptr.shape[0] - 1, indices.shape[0]
    real = weights.dtype == jnp.float32
    if not real and weights.dtype != jnp.int32:
        raise TypeError(f"weights are {weights.dtype}: the kernel takes float32 or int32")
    zero = jnp.int32(0)
    if n == 0:
        return jnp.zeros(0, weights.dtype), zero, zero, zero, zero
    prepared = prepared or {}
    narrow = "adjacency" in prepared
    config = default_config(n, nnz, narrow=narrow) if config is None else config
    c = types.SimpleNamespace(
        **dataclasses.asdict(config), n=n, real=real, capacity=n + nnz // config.span + 1
    )
    operands = {"source": jnp.atleast_1d(source).astype(jnp.int32),
                "delta": jnp.atleast_1d(delta).astype(weights.dtype)}  # fmt: skip
    if narrow:
        kind, shared, entries = _sssp_narrow, 2 * c.queue + 12 + c.threads, n
        adjacency = prepared["adjacency"]
        c.quads, c.linked = adjacency.shape[1] // 4, adjacency.shape[0] > n
        operands |= {
            name: prepared[name]
            for name in ("adjacency", "lengths", "rank", "order")
            if name in prepared
        }
    else:
        kind, shared, entries = _sssp_wide, 4 + c.near_buffer + c.far_buffer + 8, 4 * c.capacity
        c.solo_in = 0
        operands |= {"indptr": indptr, "indices": _filled(indices), "weights": _filled(weights)}
    outputs = {"labels": n, "marks": 2 * n, "queue": 2 * entries, "far": 2 * n}
    if "order" in operands:
        outputs["distances"] = n
    out = _run(kind, c, operands, outputs, shared, interpret)
    distances = out.get("distances", out["labels"])
    if real:
        distances = lax.bitcast_convert_type(distances, jnp.float32)
    return distances, *(out["summary"][j] for j in range(4))


def _filled(x):
    return x if x.shape[0] else jnp.zeros(1, x.dtype)


def _run(kind, c, operands, outputs, shared, interpret):
    names = [*operands, *outputs, "summary", "control"]

    def kernel(k, *arrays):
        memory = types.SimpleNamespace(
            **{"rank": None, "order": None} | dict(zip(names, arrays, strict=True))
        )
        steps, ok, splits, work = _sssp_rounds.body(k, c, memory, memory, kind)
        mine = (k.program == 0) & (k.thread == 0)
        for j, word in enumerate((steps, 1 - ok, splits, work)):
            k.store(memory.summary, j, word, mask=mine)

    shapes = [jax.ShapeDtypeStruct((size,), jnp.int32) for size in (*outputs.values(), 4)]
    name = kind.__name__.rpartition("._")[2]
    out = launch(kernel, list(operands.values()), shapes, programs=c.programs, threads=c.threads,
                 shared_words=shared, name=name, interpret=interpret)  # fmt: skip
    return dict(zip([*outputs, "summary"], out, strict=False))
