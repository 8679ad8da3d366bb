"""Tiles: SpMSpV by tiles and columns, TileBFS by one, two and three kernels, conversion, memory.

The experiments of Ji et al., "TileSpMSpV", ICPP 2022, section 4 (Figures 6 to 11), on matrices of
`tile_suite.py` and of the data folder (their pattern made symmetric).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxspv as jsp
from jaxspv.formats import BitTiled, Tiled
from pallas_kernels.tile_bfs import Side, tile_bfs

from . import baselines, tile_suite
from .bsr import cusparse_bsr
from .bucket import bucket_spmspv
from .harness import Candidate, jitted, measure, nbytes, timed
from .options import Options
from .suite import Workload

DENSITIES = (1e-1, 1e-2, 1e-3, 1e-4)
WAYS = {
    "Push-CSC": jsp.TileRule(("push_csc",)),
    "Push-CSC, Push-CSR": jsp.TileRule(("push_csc", "push_csr")),
    "three kernels": jsp.TileRule(),
}
LOOPED = ("XLA columns", "bucket")
TRACED = ("fem-263-6", "fem-257-9-9-3", "rmat-20", "mesh-1924")  # times per level, Figure 10
TRACE_LEVELS = 2048


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix."""
    A = _matrix(workload)
    head = {"n": A.shape[0], "entries": int(A.count)}
    converted, costs = _conversion(A, options)
    records = _products(A, converted["tiled"], options)
    for record in records:
        record["case"] = f"{workload.name} {record['density']:g}"
    records += _searches(workload.name, A, converted["bittiled"], options)
    records.append(costs)
    return [{**head, **r} for r in records]


def _matrix(workload: Workload) -> jsp.CSR:
    if workload.name in tile_suite.NAMES:
        return jax.block_until_ready(tile_suite.NAMES[workload.name].build())
    return jsp.from_scipy(workload.symmetrised().matrix())


def _repeats(options: Options) -> int:
    return max(options.repeats, 1)


# ---- Conversion and memory ----


def _conversion(A: jsp.CSR, options: Options):
    """The tiled forms, and a record of their seconds (second call, compiled) and bytes."""
    makers: dict[str, Callable[[], Any]] = {
        "tiled": lambda: Tiled.from_coo(A.to_coo()),
        "bittiled": lambda: BitTiled.from_coo(A.to_coo(), symmetric=True),
    }
    made, record = {}, {"benchmark": "tiles: conversion", "program": "from CSR", "runs": 3}
    for name, make in makers.items():
        made[name] = jax.block_until_ready(make())
        seconds = min(timed(make)[1] for _ in range(3))
        record[f"{name}_ms"] = 1e3 * seconds
        size = A if name == "tiled" else (A.indptr, A.indices)
        record[f"{name}_bytes_over_csr"] = nbytes(made[name]) / nbytes(size)
    T, B = made["tiled"], made["bittiled"]
    record |= {"nt": T.nt, "tiles": int(T.num_tiles), "remainder": T.rest_row.shape[0],
               "bit_nt": B.nt, "bit_tiles": int(B.num_tiles),
               "bit_remainder": B.by_row.rest_minor.shape[0]}  # fmt: skip
    record |= jsp.choose_format(A, "bfs")._asdict() | {"verified": True}
    record["median_ms"] = record["min_ms"] = record["max_ms"] = record["tiled_ms"]
    return made, record


# ---- SpMSpV ----


def _products(A: jsp.CSR, T: jsp.Tiled, options: Options) -> list[dict[str, Any]]:
    n, columns = A.shape[0], A.T  # the matrix is symmetric: its columns are its rows
    room = max(1, round(DENSITIES[0] * n))
    host = A.to_scipy() if int(A.count) < 2**31 else None
    programs = _programs(columns, T, room, options)
    records = []
    rng = np.random.default_rng(1)
    for density in DENSITIES:
        count = max(1, round(density * n))
        places = np.sort(rng.choice(n, count, replace=False)).astype(np.int32)
        values = rng.random(count, np.float32)
        x = jsp.vector_from_entries(places, values, n, nse=room)
        check = _check_product(host, places, values)
        operands = dict.fromkeys(programs, x) | {"tiled SpMV": _full(x)}
        found = [Candidate(name, functools.partial(call, operands[name]), check, _repeats(options))
                 for name, call in programs.items()]  # fmt: skip
        if options.baselines:
            found += _library_products(A, T, x, check, options)
        edges = int(np.diff(host.indptr)[places].sum())
        for record in measure(found, **options.timing()):
            record |= {"benchmark": "tiles: SpMSpV", "density": density, "edges": edges,
                       "gflops": 2e-6 * edges / record["median_ms"]}  # fmt: skip
            records.append(record)
    return records


def _programs(columns, T, room, options) -> dict[str, Callable[..., Any]]:
    """name -> call(x): products one after the other inside one program."""
    edges = int(np.sort(np.diff(np.asarray(columns.indptr)))[-room:].sum())
    nse = columns.shape[0]
    ways = {
        "TileSpMSpV": (jsp.spmspv, T),
        "columns": (functools.partial(jsp.spmspv, method="scatter"), columns),
        "auto": (jsp.spmspv, columns),
        "XLA columns": (functools.partial(jsp.spmspv, method="scatter", backend="xla"), columns),
        "bucket": (functools.partial(bucket_spmspv, edges=edges, nse=nse), columns),
    }
    made = {
        name: functools.partial(_chain(run, _repeats(options), name in LOOPED), M)
        for name, (run, M) in ways.items()
    }
    return made | {"tiled SpMV": made["TileSpMSpV"]}


def _full(x):
    """x with every place stored, zeros too."""
    (n,) = x.shape
    places = jnp.arange(n, dtype=jnp.int32)
    return jsp.SparseVector(x.todense(), places, jnp.int32(n), jnp.asarray(False), (n,))


def _chain(run, repeats, looped):
    """(A, x) -> the last of `repeats` products in one program, each after the one before.

    In a straight line, or in a loop on the device what is made of many operations.
    """
    inner = jax.jit(run)

    def again(A, x, y):
        # at most the old count, which XLA does not know: x stays what it is
        return inner(A, dataclasses.replace(x, count=jnp.minimum(x.count, y.count + x.nse)))

    def program(A, x):
        y = inner(A, x)
        if looped:
            return lax.fori_loop(1, repeats, lambda _, y: again(A, x, y), y)
        for _ in range(repeats - 1):
            y = again(A, x, y)
        return y

    return jitted(program)


def _library_products(A, T, x, check, options):
    found, dense, repeats = [], x.todense(), _repeats(options)
    sparse, M = baselines.bcoo_spmv(A.to_scipy()) if int(A.count) < 2_000_000 else (None, None)
    if sparse is not None:
        found.append(Candidate("BCOO", lambda: jax.block_until_ready(sparse(M, dense)), check))
    if baselines.has_cupy():
        call = baselines.cupy_spmv_device(A.indptr, A.indices, A.data, dense, repeats)
        found.append(Candidate("cuSPARSE", call, check, repeats))
        call = cusparse_bsr(T, dense, repeats)
        if call is not None:
            found.append(Candidate("cuSPARSE BSR", call, check, repeats))
    return found


def _check_product(host, places, values):
    part = host[places]
    want = values.astype(np.float64) @ part.astype(np.float64)
    scale = np.abs(values).astype(np.float64) @ abs(part).astype(np.float64)
    stored = np.bincount(part.indices, minlength=host.shape[0]) > 0

    def check(y):
        if isinstance(y, jsp.SparseVector):
            count = int(y.count)
            indices = np.asarray(y.indices)
            # of a full x every row with an entry is stored, of a sparse one those it reaches
            if count <= stored.sum():
                assert (indices[:count] == np.flatnonzero(stored)).all(), "other rows are stored."
                assert (indices[count:] == host.shape[0]).all(), "padding holds a row."
            y = y.todense()
        wrong = np.flatnonzero(~(np.abs(np.asarray(y, np.float64) - want) <= 2e-5 * scale + 1e-30))
        assert not len(wrong), f"y[{wrong[0]}] is not {want[wrong[0]]}."

    return check


# ---- BFS ----


def _searches(name: str, A: jsp.CSR, B: jsp.BitTiled, options: Options) -> list[dict[str, Any]]:
    graph = jsp.prepare(A, for_=("bfs",), symmetric=True)
    both = jsp.prepare(graph, for_=("bittiled",))
    check = _check_levels(A)
    ways: dict[str, tuple[Callable[..., Any], Any]] = {
        label: (functools.partial(jsp.bfs, rule=rule), B) for label, rule in WAYS.items()
    }
    ways["rows"] = (functools.partial(jsp.bfs, format="csr"), graph)
    ways["auto"] = (jsp.bfs, both)
    repeats = _repeats(options)
    found = [
        Candidate(label, functools.partial(_search_chain(run, repeats), G, jnp.int32(0)), check,
                  repeats, notes={"chosen": str(jsp.explain("bfs", G)).split("\n")[0]})
        for label, (run, G) in ways.items()
    ]  # fmt: skip
    levels = np.asarray(found[0].call())
    records = measure(found, **options.timing())
    for record in records:
        record |= {"benchmark": "tiles: BFS", "case": name, "levels": int(levels.max()) + 1,
                   "reached": int((levels >= 0).sum())}  # fmt: skip
    if name in TRACED and jax.default_backend() == "gpu":
        records[2]["trace"] = _trace(B)
    return records


def _search_chain(run, repeats):
    inner = jax.jit(lambda G, source: run(G, source, parents=False).levels)

    def program(G, source):
        levels = inner(G, source)
        for _ in range(repeats - 1):
            source = source + levels[source]  # of level 0
            levels = inner(G, source)
        return levels

    return jitted(program)


def _check_levels(A: jsp.CSR):
    """Levels from vertex 0 by their equation: an edge spans one level at most, and each vertex but
    the source has a neighbour one level nearer (the matrix is symmetric)."""

    @jax.jit
    def wrong(A, levels):
        row, col = A.rowcol()
        n = A.shape[0]
        there = row < n
        a, b = (levels.at[v].get(mode="fill", fill_value=-1) for v in (row, col))
        apart = there & (((a < 0) != (b < 0)) | (jnp.abs(a - b) > 1))
        nearer = there & (a >= 0) & (b == a - 1)
        parent = jnp.zeros(n, bool).at[jnp.where(nearer, row, n)].set(True, mode="drop")
        return jnp.sum(apart) + jnp.sum((levels > 0) & ~parent) + jnp.sum(
            (levels == 0) != (jnp.arange(n) == 0))  # fmt: skip

    def check(levels):
        assert int(wrong(A, levels)) == 0, "these are no levels from vertex 0."

    return check


def _trace(B: jsp.BitTiled) -> list[list[int]]:
    """[level, vertices, way, clock cycles] of each level of the three kernels."""
    side = Side(*(getattr(B.by_row, field) for field in Side._fields))
    search = jax.jit(lambda s: tile_bfs(
        s, s, jnp.int32(0), n=B.shape[0], nt=B.nt, trace=TRACE_LEVELS)[3])  # fmt: skip
    jax.block_until_ready(search(side))
    rows = np.asarray(search(side))
    rows = rows[rows[:, 0] >= 0]
    clock = rows[:, 3].astype(np.uint32)
    rows[:, 3] = np.diff(clock, append=clock[-1:]).astype(np.int32)
    return rows.tolist()
