"""`jaxspv tune`: measures `pallas_kernels.tuning.Constants` on the GPU that is present."""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its modules are imported when they are first used

from pallas_kernels.bfs.api import bfs
from pallas_kernels.cores import cores
from pallas_kernels.layouts.adjacency import Adjacency
from pallas_kernels.layouts.sliced_rows import prepare_pagerank
from pallas_kernels.pagerank.one_gpu import LEAST, Limits, pagerank
from pallas_kernels.products.spmm import csr_spmm
from pallas_kernels.products.spmv import csr_spmv
from pallas_kernels.simt.device import Device, target
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring
from pallas_kernels.tuning import Constants, constants, store, using

from .._core.compat import kernels_refused
from ..construct.from_arrays import from_scipy
from ..generators.graphs import grid2d
from .output import waiting

TIE = 0.98  # another value than the usual one has to take at most this share of its time
CALLS, REPEATS = 20, 5  # calls that are enqueued together, and how often; the least time counts
BOUNDS = (4, 8, 12, 16, 24, 32, 48, 64, 96)
SCALE = 18  # of the largest R-MAT graph


class Case(NamedTuple):
    """A call on some graph. form: what it does for a value of the constant: values of one form are
    measured once."""

    call: Callable[..., Any]
    operands: tuple[Any, ...]
    form: Callable[[Any], Hashable] = lambda value: value


class Trial(NamedTuple):
    """The values of a constant that are tried, and the cases, whose times count equally."""

    values: Sequence[Any]
    cases: Callable[[], Mapping[str, Case]]


def run(args: argparse.Namespace) -> dict[str, Any]:
    """The command."""
    if jax.default_backend() != "gpu":
        raise ValueError(f"there is no GPU to measure: JAX runs on {jax.default_backend()}.")
    if reason := kernels_refused():
        raise ValueError(f"there are no kernels to tune: {reason}.")
    report = tuned(target(), trials(), Timed())
    if not (args.verbose or args.json):
        del report["measured"]
    return report


Measure = Callable[[Case], Callable[[], float]]  # as `Timed`


def tuned(device: Device, trials: Mapping[str, Trial], measure: Measure) -> dict[str, Any]:
    """Measures and stores the constants of a device; returns the report of the command."""
    found, measured = constants(), []
    for name, trial in trials.items():
        with waiting(name, sys.stderr.isatty()):
            value, times = best(name, trial, measure)
        found = found._replace(**{name: value})
        for (case, form), spent in times.items():
            row = {"constant": name, "case": case, "form": str(form), "microseconds": 1e6 * spent}
            measured.append(row)
    file = store(device, found)
    return {"device": device.kind, **found._asdict(), "file": str(file), "measured": measured}


def best(
    name: str, trial: Trial, measure: Measure
) -> tuple[Any, dict[tuple[str, Hashable], float]]:
    """The value of the least geometric mean of times, and the times by (case, form). The usual
    value stays where that is faster by less than TIE."""
    ready: dict[tuple[str, Hashable], Callable[[], float]] = {}
    usual, cases = getattr(Constants(), name), trial.cases()
    values = dict.fromkeys((usual, *trial.values))
    for value, (label, case) in itertools.product(values, cases.items()):
        key = label, case.form(value)
        if key not in ready:
            with using(Constants()._replace(**{name: value})):
                ready[key] = measure(case)
    times = {key: seconds() for key, seconds in ready.items()}
    total = {}
    for value in values:
        each = (times[label, case.form(value)] for label, case in cases.items())
        total[value] = sum(map(math.log, each))
    least = min(total, key=total.__getitem__)
    tie = total[least] >= total[usual] + len(cases) * math.log(TIE)
    return (usual if tie else least), times


class Timed:
    """timed(case)() is the time of one of many calls. They are traced by timed(case), with the
    constants that are in use, and compiled in the background; the second call waits for that."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())

    def __call__(self, case: Case) -> Callable[[], float]:
        lowered = jax.jit(lambda *operands: case.call(*operands)).lower(*case.operands)
        program = self.pool.submit(lowered.compile)
        return lambda: seconds(program.result(), case.operands)


def seconds(program: Callable[..., Any], operands: tuple[Any, ...]) -> float:
    """The time of one of many calls, waiting included."""
    jax.block_until_ready(program(*operands))
    spent = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for _ in range(CALLS - 1):
            program(*operands)
        jax.block_until_ready(program(*operands))
        spent.append(time.perf_counter() - start)
    return min(spent) / CALLS


def trials() -> dict[str, Trial]:
    """What is measured, by the name of the constant."""
    return {
        "bfs_alpha": Trial((4.0, 8.0, 14.0, 24.0, 40.0), _searches),
        "increments_from": Trial([1 << scale for scale in (*range(15, SCALE + 1), 31)], _ranks),
        "solo_pieces": Trial((32, 64, 128, 256, 512), _peelings),
        "spmm_waves": Trial((1, 2, 3, 4), _products),
        "spmv_bounds": Trial(tuple(itertools.combinations(BOUNDS, 3)), _rows),
    }


@functools.cache
def _drawn() -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the edges of the largest graph. Drawn on the host: on a GPU each size of a graph
    is a program to compile."""
    rng, edges = np.random.default_rng(0), LEAST << SCALE
    head, tail = np.zeros((2, edges), np.int32)
    for _ in range(SCALE):
        draw = rng.random(edges, np.float32)
        head += head + (draw >= 0.76)
        tail += tail + (((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95))
    return head, tail


@functools.cache
def _rmat(scale: int, edge_factor: int = 16) -> Any:
    """An R-MAT graph: the upper bits of both ends of edges of a larger one."""
    head, tail = (x[: edge_factor << scale] >> SCALE - scale for x in _drawn())
    name = np.random.default_rng(1).permutation(1 << scale).astype(np.int32)
    ones = np.ones(2 * len(head), np.float32)
    ends = name[np.concatenate([head, tail])], name[np.concatenate([tail, head])]
    A = scipy.sparse.coo_array((ones, ends), shape=(1 << scale, 1 << scale)).tocsr()
    return from_scipy(A, format="csr")


@functools.cache
def _grid(side: int) -> Any:
    return grid2d(jax.random.key(0), side)


def _searches() -> dict[str, Case]:
    def of(A):
        graph, source = Adjacency(A.indptr, A.indices), jnp.argmax(jnp.diff(A.indptr))
        return Case(bfs, (graph, source))

    return {f"R-MAT {scale}": of(_rmat(scale)) for scale in (15, 17)}


def _ranks() -> dict[str, Case]:
    def of(A):
        n, strength = A.shape[0], jnp.diff(A.indptr).astype(jnp.float32)
        prepared, limits = prepare_pagerank(A.indptr, A.indices), Limits(0.85, 1e-6, 100, 0)
        operands = strength, jnp.full(n, 1 / n, jnp.float32), prepared
        run = lambda s, p, prepared: pagerank(s, p, limits, prepared=prepared)  # noqa: E731
        return Case(run, operands, lambda value: n >= value)

    # as many entries that the form is not excluded by their number
    return {f"R-MAT {scale}": of(_rmat(scale, LEAST)) for scale in range(15, SCALE + 1)}


def _peelings() -> dict[str, Case]:
    graphs = {"R-MAT 16": _rmat(16), "grid 700": _grid(700)}
    return {name: Case(cores, (A.indptr, A.indices)) for name, A in graphs.items()}


def _products() -> dict[str, Case]:
    def of(A, k):
        operands = A.indptr, A.indices, A.data, jnp.ones((A.shape[0], k))
        return Case(functools.partial(csr_spmm, semiring=_plus_times()), operands)

    graphs = {"R-MAT 16": _rmat(16), "grid 700": _grid(700)}
    return {f"{name}, {k} columns": of(A, k) for name, A in graphs.items() for k in (8, 128)}


def _rows() -> dict[str, Case]:
    def of(A):
        mean, operands = A.nse / A.shape[0], (A.indptr, A.indices, A.data, jnp.ones(A.shape[0]))
        call = functools.partial(csr_spmv, semiring=_plus_times())
        return Case(call, operands, lambda bounds: sum(mean > bound for bound in bounds))

    rmats = {
        f"R-MAT 18, {edges} edges a vertex": _rmat(18, edges) for edges in (3, 5, 9, 14, 22, 40)
    }
    return {name: of(A) for name, A in {**rmats, "grid 1500": _grid(1500)}.items()}


def _plus_times() -> ScalarSemiring:
    return ScalarSemiring.of(jax.lax.mul, jax.lax.add, 0.0, jnp.float32)
