"""The experiments of Yang, Wang, Owens, "Fast sparse matrix and sparse vector multiplication
algorithm on the GPU", IPDPSW 2015: BFS by products, their Tables I-IV and Figures 1 and 2.

BFS is their Algorithm 1: `w <- A^T w` over (or, and), from a vector in dense form, until no vertex
is new. The product is `jsp.vxm` on the compacted vector with method "scatter" (no sort), "sort"
(radix sort) or "merge" (merge sort), or `jsp.mxv` of the prepared matrix and the dense vector
(SpMV).

How the time is split (Table III). The levels of a finished search are replayed in one program,
level after level, by stages: *common* is the stream compaction of the vector, the row offsets, and
the gather of the neighbours into one array; then that array is *sorted*; then ones are *scattered*
to the places it names. Programs that stop after each stage are timed in turn; a part is the
difference of two of them (below their noise it may be negative). What a whole search takes beyond
its parts is the reduction of duplicates, the update of the levels and the loop.

Each search of Table IV starts from another of ten vertices with an edge; MTEPS counts the
undirected edges of the reached component once.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxspv as jsp
from jaxspv import verify
from jaxspv.ops.products.common.expand import capacities, edge_slots, select_runs
from jaxspv.ops.products.spmspv.xla import CHUNKS, merge_rows

from .. import suite
from ..harness import Candidate, WrongResult, alone, jitted, measure, preparation, summary, timed
from ..options import Options
from ..prepared import component_edges
from ..suite import Workload

METHODS = {"scatter": "no sort", "sort": "radix sort", "merge": "merge sort", "dense": "SpMV"}
SORTS = ("scatter", "sort", "merge")
BASELINE = "SpMV"
SCALES = range(16, 22)
PUBLISHED_MS = {  # Table II, NVIDIA K40c: (SpMSpV, SpMV)
    "ak2010": (1.686, 0.427),
    "belgium_osm": (63.937, 97.280),
    "coAuthorsDBLP": (4.530, 6.213),
    "delaunay_n13": (1.085, 0.568),
    "delaunay_n21": (11.511, 22.241),
    "soc-LiveJournal1": (73.722, 214.357),
    "kron_g500-logn21": (70.935, 230.609),
}


def named(options: Options) -> dict[str, str]:
    """Their data sets -> ours: what is not at hand has a substitute of its kind, and size."""
    scale = min(21, options.max_scale)
    return {
        "ak2010": "ak2010",
        "belgium_osm": "luxembourg_osm",
        "coAuthorsDBLP": "coAuthorsDBLP",
        "delaunay_n13": "delaunay_n13",
        f"delaunay_n{scale}": f"delaunay{scale}",
        "soc-LiveJournal1": "ego-Twitter-undirected",
        f"kron_g500-logn{scale}": f"rmat{scale}",
    }


def workloads(options: Options) -> list[Workload]:
    """The graphs of `named` that are at hand, and the R-MAT series up to `options.max_scale`."""
    series = [f"rmat{scale}" for scale in SCALES if scale <= options.max_scale]
    at_hand = [name for name in named(options).values() if suite.exists(name)]
    return suite.select([*at_hand, *series])


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph: a search by each method, and the parts of the three SpMSpV."""
    matrix = workload.symmetrised().matrix()
    A = jsp.from_scipy(matrix.astype(bool))
    operands = {m: A for m in METHODS} | {"dense": jsp.prepare(A, for_="mxv")}
    sources = _sources(matrix, options.sources)
    levels = [verify.levels_of(matrix, s) for s in sources]
    degree = np.diff(matrix.indptr)
    shared = {
        "n": matrix.shape[0],
        "entries": matrix.nnz,
        "max_degree": int(degree.max()),
        "levels": int(levels[0].max()) + 1,
        "stands_for": {v: k for k, v in named(options).items()}.get(workload.name),
    }
    edges = [component_edges(matrix, found >= 0, True) for found in levels]
    records = _searches(operands, sources, levels, edges, options)
    in_series = workload.name in {f"rmat{s}" for s in SCALES} - set(named(options).values())
    parts = {} if in_series else _parts(A, levels[0], edges[0], options)
    for record in records:
        record.update(shared)
        record["parts_ms"] = parts.get(record["method"])
    return records


def _sources(matrix, count: int) -> list[int]:
    """The vertex of largest degree, then others with an edge, drawn with a fixed seed."""
    degree = np.diff(matrix.indptr)
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(degree))[: count - 1]
    return [int(np.argmax(degree)), *(int(v) for v in drawn)]


# ---- Whole searches ----


def search(A: Any, source: Any, *, method: str) -> jax.Array:
    """(n,) int32 levels from `source`, -1 where unreached: Algorithm 1. A is symmetric, boolean.

    O(edges) in all for the SpMSpV methods plus O(n) a level for the compaction of the dense vector,
    as in the paper; O(levels * entries) for "dense".
    """
    n = A.shape[0]

    def step(state):
        depth, levels, w = state
        if method == "dense":
            w = jsp.mxv(A, w, jsp.semirings.or_and) & (levels < 0)
            return depth + 1, jnp.where(w, depth + 1, levels), w
        x = jsp.vector_from_dense(w, nse=n)
        y = jsp.vxm(x, A, jsp.semirings.or_and, method=method)
        new = y.valid() & (levels.at[y.indices].get(mode="fill", fill_value=0) < 0)
        place = jnp.where(new, y.indices, n)
        levels = levels.at[place].set(depth + 1, mode="drop")
        return depth + 1, levels, levels == depth + 1

    w = jnp.arange(n, dtype=jnp.int32) == source
    state = (jnp.int32(0), jnp.where(w, 0, -1).astype(jnp.int32), w)
    return lax.while_loop(lambda s: s[2].any(), step, state)[1]


def _searches(operands, sources, levels, edges, options):
    """One record a method: times over the sources, methods in turn at each source."""
    programs = {m: jitted(lambda A, s, method=m: search(A, s, method=method)) for m in METHODS}
    first, samples, slow = {}, {m: [] for m in METHODS}, set()
    for method, program in programs.items():
        call = functools.partial(program, operands[method], jnp.int32(sources[0]))
        got, first[method] = preparation(call)
        _compare(method, sources[0], levels[0], got)
        with alone():
            warm = timed(call)[1]
        if warm * len(sources) > options.limit_s:
            slow.add(method)
            samples[method].append(warm)
    for (k, source), method in itertools.product(enumerate(sources), METHODS):
        if method not in slow:
            call = functools.partial(programs[method], operands[method], jnp.int32(source))
            with alone():
                got, seconds = timed(call)
            _compare(method, source, levels[k], got)
            samples[method].append(seconds)
    records = []
    for method, label in METHODS.items():
        record = summary(label, samples[method], first[method])
        points = [[e, 1e3 * t] for e, t in zip(edges, samples[method], strict=False)]
        mteps = sum(e for e, _ in points) / sum(t for _, t in points) * 1e-3
        records.append({**record, "method": method, "points": points, "mteps": mteps})
    return records


def _compare(method, source, want, got):
    wrong = np.flatnonzero(np.asarray(got) != want)
    if len(wrong):
        raise WrongResult(f"{METHODS[method]} from {source}: level of vertex {wrong[0]}.")


# ---- The parts ----


def replay(A: Any, levels: Any, depth: Any, *, method: str, sort: bool, scatter: bool) -> Any:
    """Runs the stages of every product of a finished search.

    Args:
        levels: (n,) of the search; depth: the number of its levels.
        method: "scatter" gathers in chunks, "sort" and "merge" into one array of the least capacity
            that holds it, as the products of these names do. Keys alone, as in Algorithm 2.
        sort, scatter: whether these stages run.

    Returns:
        (edges gathered, a checksum, (n,) bool of the places written).
    """
    n = A.shape[0]

    def stages(x, runs, seen, first, size):
        slot, _, valid = edge_slots(runs, first, size)
        keys = jnp.where(valid, A.indices.at[slot].get(mode="fill", fill_value=n), n)
        # The barriers make every stage write its array, as kernels would, whatever reads it.
        keys = lax.optimization_barrier(keys)
        if sort and method == "sort":
            keys = lax.optimization_barrier(lax.sort(keys))
        if sort and method == "merge":
            keys = lax.optimization_barrier(merge_rows(keys, runs)[0])
        if scatter:
            seen = seen.at[keys].set(True, mode="drop")
        return keys[0] + keys[-1], seen

    def in_chunks(x, runs, seen, size):
        def step(state):
            first, checksum, seen = state
            found, seen = stages(x, runs, seen, first, size)
            return first + size, checksum + found, seen

        state = (jnp.int32(0), jnp.int32(0), seen)
        return lax.while_loop(lambda s: s[0] < runs.total, step, state)[1:]

    def whole(x, runs, seen, size):
        return stages(x, runs, seen, jnp.int32(0), size)

    sizes = capacities(A.nse) if method != "scatter" else tuple(min(c, A.nse) for c in CHUNKS)
    run = whole if method != "scatter" else in_chunks

    def level(k, state):
        edges, checksum, seen = state
        x = jsp.vector_from_dense(levels == k, nse=n)
        runs = select_runs(A.indptr, x.indices, x.count)
        branch = jnp.searchsorted(jnp.asarray(sizes, jnp.int32), runs.total)
        branches = [lambda seen, s=s: run(x, runs, seen, s) for s in sizes]
        found, seen = lax.switch(jnp.minimum(branch, len(sizes) - 1), branches, seen)
        return edges + runs.total, checksum + found, seen

    return lax.fori_loop(0, depth, level, (jnp.int32(0), jnp.int32(0), jnp.zeros(n, bool)))


def _parts(A, levels, edges, options):
    """Milliseconds of the common, sort and scatter part of each SpMSpV method."""
    reached, depth = levels >= 0, jnp.int32(levels.max() + 1)
    device = jnp.asarray(levels)

    def candidate(method, *stages):
        on = {stage: stage in stages for stage in ("sort", "scatter")}
        program = jitted(lambda A, v, d: replay(A, v, d, method=method, **on))

        def check(result):
            gathered, _, seen = result
            assert int(gathered) == 2 * edges, "another number of edges is gathered."
            if on["scatter"]:
                assert (np.asarray(seen) == reached).all(), "other places are written."

        call = lambda: jax.block_until_ready(program(A, device, depth))  # noqa: E731
        return Candidate(" ".join((method, *stages)), call, check)

    programs = [
        candidate("scatter"),
        candidate("scatter", "scatter"),
        candidate("sort"),
        candidate("sort", "sort"),
        candidate("sort", "sort", "scatter"),
        candidate("merge", "sort"),
        candidate("merge", "sort", "scatter"),
    ]
    records = measure(programs, **options.timing())
    ms = {r["program"]: r["median_ms"] for r in records}
    ms |= {"merge": ms["sort"], "scatter sort": ms["scatter"]}
    ms["scatter sort scatter"] = ms["scatter scatter"]
    return {
        m: {
            "common": ms[m],
            "sort": ms[f"{m} sort"] - ms[m],
            "scatter": ms[f"{m} sort scatter"] - ms[f"{m} sort"],
        }
        for m in SORTS
    }
