"""Tiles: SpMSpV by tiles and by columns, conversion, memory.

The experiments of Ji et al., "TileSpMSpV", ICPP 2022, section 4 (Figures 6 and 11), on matrices of
`tile_suite.py` and of the data folder (their pattern made symmetric). `traversal/tile_bfs.py` has
those of TileBFS.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

import jaxspv as jsp
from jaxspv.formats import BitTiled, Tiled

from .. import baselines, tile_suite
from ..harness import Candidate, alone, jitted, measure, nbytes, timed
from ..options import Options
from ..suite import Workload
from ..timeline import timeline
from .bsr import cusparse_bsr
from .bucket import bucket_spmspv

DENSITIES = (1e-1, 1e-2, 1e-3, 1e-4)
LOOPED = ("XLA columns", "bucket")
KERNELS = {
    "TileSpMSpV": "spmspv_tile",
    "columns": "spmspv_push",
    "cuSPARSE": "csrmv",
    "cuSPARSE BSR": "bsr",
    "auto": "spmspv_push",
}  # what a profile calls a program's kernel


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix; with one backend asked for, without the methods of others that take
    long (BCOO, buckets, XLA, the tiled SpMV)."""
    A = matrix(workload)
    head = {"n": A.shape[0], "entries": int(A.count)}
    tiled, costs = _conversion(A)
    records = _products(A, tiled, options)
    for record in records:
        record["case"] = f"{workload.name} {record['density']:g}"
    spmv = [r["step_ms"] for r in records if r["program"] == "cuSPARSE" and "step_ms" in r]
    for name in ("tiled", "bittiled"):
        if spmv and f"{name}_device_ms" in costs:
            costs[f"{name}_over_spmv"] = costs[f"{name}_device_ms"] / min(spmv)
    records.append(costs)
    return [{**head, **r} for r in records]


def matrix(workload: Workload) -> jsp.CSR:
    """The matrix on the device, its pattern symmetric."""
    if workload.name in tile_suite.NAMES:
        return jax.block_until_ready(tile_suite.NAMES[workload.name].build())
    return jsp.from_scipy(workload.symmetrised().matrix())


def _repeats(options: Options) -> int:
    return max(options.repeats, 1)


# ---- Conversion and memory ----


def _conversion(A: jsp.CSR):
    """The matrix as `Tiled`; a record of what both tiled forms take, compiled, and their bytes."""
    makers: dict[str, Callable[[], Any]] = {
        "tiled": lambda: Tiled.from_coo(A.to_coo()),
        "bittiled": lambda: BitTiled.from_csr(A, symmetric=True),
    }
    made, record = {}, {"benchmark": "tiles: conversion", "program": "from CSR", "runs": 3}
    for name, make in makers.items():
        made[name] = jax.block_until_ready(make())
        with alone():
            seconds = min(timed(make)[1] for _ in range(3))
            events = timeline(lambda make=make: jax.block_until_ready(make()))
        record[f"{name}_ms"] = 1e3 * seconds
        if events:  # without what the host takes to learn the sizes
            record[f"{name}_device_ms"] = 1e-3 * sum(took for _, _, took in events)
        size = A if name == "tiled" else (A.indptr, A.indices)
        record[f"{name}_bytes_over_csr"] = nbytes(made[name]) / nbytes(size)
    T, B = made["tiled"], made["bittiled"]
    record |= {
        "nt": T.nt,
        "tiles": int(T.num_tiles),
        "remainder": T.rest_row.shape[0],
        "bit_nt": B.nt,
        "bit_tiles": int(B.num_tiles),
        "bit_remainder": B.by_row.rest_minor.shape[0],
    }
    record |= jsp.choose_format(A, "bfs")._asdict() | {"verified": True}
    record["median_ms"] = record["min_ms"] = record["max_ms"] = record["tiled_ms"]
    return T, record


# ---- SpMSpV ----


def _products(A: jsp.CSR, T: jsp.Tiled, options: Options) -> list[dict[str, Any]]:
    n, columns = A.shape[0], A.T  # the matrix is symmetric: its columns are its rows
    capacity = max(1, round(DENSITIES[0] * n))
    host = sp.csr_array(tuple(map(np.asarray, (A.data, A.indices, A.indptr))), shape=A.shape)
    programs = _programs(columns, T, capacity, options)
    records = []
    rng = np.random.default_rng(1)
    for density in DENSITIES:
        count = max(1, round(density * n))
        places = np.sort(rng.choice(n, count, replace=False)).astype(np.int32)
        values = rng.random(count, np.float32)
        x = jsp.vector_from_entries(places, values, n, nse=capacity)
        check = _check_product(host, places, values)
        operands = dict.fromkeys(programs, x) | {"tiled SpMV": _full(x)}
        found = [
            Candidate(name, functools.partial(call, operands[name]), check, _repeats(options))
            for name, call in programs.items()
        ]
        if options.baselines:
            found += _library_products(A, T, x, check, options)
        edges = int(np.diff(host.indptr)[places].sum())
        measured = measure(found, **options.timing())
        own = [c for c in found if c.name in KERNELS and c.name != "auto"]
        times = _device_times(own) | _device_times([c for c in found if c.name == "auto"])
        for record in measured:
            record |= times.get(record["program"], {})
            ms = record.get("step_ms", record["median_ms"])
            record |= {
                "benchmark": "tiles: SpMSpV",
                "density": density,
                "edges": edges,
                "gflops": 2e-6 * edges / ms,
            }
            records.append(record)
    return records


def _programs(columns, T, capacity, options) -> dict[str, Callable[..., Any]]:
    """name -> call(x): products one after the other inside one program."""
    edges = int(np.sort(np.diff(np.asarray(columns.indptr)))[-capacity:].sum())
    nse = columns.shape[0]
    ways = {
        "TileSpMSpV": (jsp.mxv, T),
        "columns": (functools.partial(jsp.mxv, method="scatter"), columns),
        "auto": (jsp.mxv, columns),
        "XLA columns": (functools.partial(jsp.mxv, method="scatter", backend="xla"), columns),
        "bucket": (functools.partial(bucket_spmspv, edges=edges, nse=nse), columns),
    }
    made = {
        name: functools.partial(_chain(run, _repeats(options), name in LOOPED), M)
        for name, (run, M) in ways.items()
        if options.backend is None or name in KERNELS
    }
    if options.backend is None:
        made["tiled SpMV"] = made["TileSpMSpV"]
    return made


def _full(x):
    """x with every place stored, zeros too."""
    (n,) = x.shape
    places = jnp.arange(n, dtype=jnp.int32)
    return jsp.SparseVector(x.todense(), places, jnp.int32(n), jnp.asarray(False), (n,))


def _chain(run, repeats, looped):
    """(A, x) -> the last of `repeats` products in one program, each after the one before.

    In a straight line, compiled as any program; or, what is made of many operations, in a loop that
    stays on the device.
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

    return (jitted if looped else jax.jit)(program)


def _library_products(A, T, x, check, options):
    found, dense, repeats = [], x.todense(), _repeats(options)
    if options.backend is None:
        product, M = jitted(lambda M, x: M @ x), A.to_bcoo()
        found.append(Candidate("BCOO", lambda: jax.block_until_ready(product(M, dense)), check))
    if baselines.has_cupy():
        call = baselines.cupy_spmv_device(A.indptr, A.indices, A.data, dense, repeats)
        found.append(Candidate("cuSPARSE", call, check, repeats))
        call = cusparse_bsr(T, dense, repeats)
        if call is not None:
            found.append(Candidate("cuSPARSE BSR", call, check, repeats))
    return found


def _device_times(found: list[Candidate]) -> dict[str, dict[str, float]]:
    """From a profile: `device_ms`, the least time of a program's own kernel, and `step_ms`, the
    median from the start of one to that of the next: a product inside a program with all that lies
    between two, without what a call costs once. No two candidates may share a kernel."""
    with alone():
        events = timeline(lambda: [c.call() for c in found])
    times = {}
    for c in found:
        mine = [(at, took) for name, at, took in events if KERNELS[c.name] in name.lower()]
        if mine:
            times[c.name] = {"device_ms": 1e-3 * min(took for _, took in mine)}
        if len(mine) > 1:
            times[c.name]["step_ms"] = 1e-3 * float(np.median(np.diff([at for at, _ in mine])))
    return times


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
