"""Masked against unmasked products on CPU: `python -m benchmarks.dev_masked_mxm [GRAPH ...]`.

For every square graph with up to 500,000 entries (or those named) the times of eager calls of
`C<L> = L plus_pair L`, of `C = L plus_pair L` and of `triangle_count`, one after the other in every
round, as a table of medians. The three agree on the number of triangles before they are timed.
"""

from __future__ import annotations

import argparse
import time

import jax
import numpy as np

import jaxspv as jsp
from jaxspv.algorithms.triangles import upward_edges

from . import suite
from .harness import environment

ROUNDS, SECONDS = 41, 0.6


def main() -> None:
    """Prints the table and the geometric mean of what the mask gains."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("graphs", nargs="*")
    names = parser.parse_args().graphs or suite.files()
    where = environment()
    print(
        f"{where['device']}, load {where['load'][0]:.1f}, jax {where['versions']['jax']}, "
        f"commit {where['commit']}, {where['date']}. Medians in milliseconds.\n"
    )
    print("| graph | entries of L | C<L> = L L | C = L L | gain | triangle_count |")
    print("|-|-:|-:|-:|-:|-:|")
    gains = []
    for name in names:
        matrix = suite.get(name).matrix()
        if matrix.shape[0] != matrix.shape[1] or matrix.nnz > 500_000:
            continue
        L, times = measured(suite.get(name).symmetrised().matrix())
        masked, unmasked, counted = (1e3 * float(np.median(t)) for t in times)
        gains.append(unmasked / masked)
        print(
            f"| {name} | {L.nse} | {masked:.3f} | {unmasked:.3f} | {gains[-1]:.2f} "
            f"| {counted:.3f} |",
            flush=True,
        )
    mean = np.exp(np.mean(np.log(gains)))
    print(f"\nGain of the mask: geometric mean {mean:.2f}, least {min(gains):.2f}.")


def measured(A):
    """The edges upwards, and the seconds of each call in every round."""
    graph = jsp.prepare(jsp.from_scipy(A), for_=(), symmetric=True)
    L = upward_edges(graph.out)
    mask, pair = jsp.structure(L), jsp.semirings.plus_pair
    calls = (
        lambda: jsp.mxm(L, L, pair, mask=mask),
        lambda: jsp.mxm(L, L, pair),
        lambda: jsp.triangle_count(graph),
    )
    C, wedges, triangles = (jax.block_until_ready(call()) for call in calls)
    closed = wedges.to_scipy().multiply(L.to_scipy()).sum()
    assert int(C.data.sum()) == int(closed) == int(triangles.count)
    times: list[list[float]] = [[] for _ in calls]
    begin = time.perf_counter()
    while len(times[0]) < ROUNDS and (len(times[0]) < 5 or time.perf_counter() - begin < SECONDS):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(call())
            taken.append(time.perf_counter() - start)
    return L, times


if __name__ == "__main__":
    main()
