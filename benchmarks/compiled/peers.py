"""Algorithms in igraph, SciPy and python-graphblas, as their users call them; a process for each.

`python -m benchmarks.compiled.peers LIBRARY FOLDER` reads `A.npz`, the matrix as it is stored, and
`B.npz`, joined with its mirror, and prints a line of JSON for each algorithm it has: name, seconds
of the one call, a number of the answer; arrays of answers are left in the folder. Nothing of JAX is
imported, conversion is not timed, the quick algorithms come first, so that a process that is ended
has told the most.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

SOURCES = 64  # of betweenness, and of closeness
Programs = dict[str, Callable[[], Any]]


class Input(NamedTuple):
    """What a library is asked about.

    Attributes:
        directed: the matrix as it is stored, A[i, j] the edge i -> j.
        undirected: joined with its mirror, weighted, without self loops.
    """

    directed: sp.csr_array
    undirected: sp.csr_array


def sources_of(n: int) -> np.ndarray:
    """Vertices from which betweenness and closeness are asked."""
    return np.unique(np.linspace(0, n - 1, min(SOURCES, n)).astype(np.int32))


def by_scipy(given: Input) -> Programs:
    """Its compiled routines, one thread."""
    A, B = given.directed, given.undirected.astype(np.float64)
    return {
        "strong components": lambda: csgraph.connected_components(A, connection="strong")[0],
        "spanning forest": lambda: float(csgraph.minimum_spanning_tree(B).sum()),
    }


def by_igraph(given: Input) -> Programs:
    """Its compiled routines, one thread. It has no quick maximal independent set."""
    import igraph

    n = given.directed.shape[0]
    D = given.directed.tocoo()
    half = sp.triu(given.undirected, 1).tocoo()
    directed = igraph.Graph(n, _pairs(D), directed=True)
    g = igraph.Graph(n, _pairs(half))
    weights = half.data.astype(np.float64).tolist()
    sources = sources_of(n).tolist()

    def forest():
        return float(half.data[g.spanning_tree(weights, return_tree=False)].sum(dtype=np.float64))

    def triangles():
        degree = np.asarray(g.degree(), np.float64)
        shares = np.asarray(g.transitivity_local_undirected(mode="zero"))
        return round(float(np.sum(shares * degree * (degree - 1) / 2)) / 3)

    return {
        "core numbers": lambda: np.asarray(g.coreness(), np.int32),
        "strong components": lambda: len(directed.connected_components(mode="strong")),
        "spanning forest": forest,
        "triangles": triangles,
        "Louvain": lambda: g.community_multilevel().modularity,
        "closeness of 64 vertices": lambda: np.asarray(g.closeness(sources)),
        "betweenness of 64 sources": lambda: 2 * np.asarray(g.betweenness(sources=sources)),
    }


def _pairs(matrix: Any) -> np.ndarray:
    return np.stack([matrix.row, matrix.col], axis=1).astype(np.int64)


def by_graphblas(given: Input) -> Programs:
    """Programs of matrix products, after LAGraph's, on all threads of the host."""
    from ..road import with_graphblas as gb

    B = given.undirected.astype(np.float32)
    B.data[:] = 1
    A = gb.matrix(B)
    # Rows in order of degree, as for the lower triangle of few products.
    order = np.argsort(np.diff(B.indptr), kind="stable")
    ranked = gb.matrix(sp.csr_array(B[order][:, order]))
    sources = sources_of(B.shape[0])
    return {
        "triangles": lambda: gb.triangles(ranked),
        "independent set": lambda: _independent(A),
        "betweenness of 64 sources": lambda: _betweenness(A, sources),
    }


def _betweenness(A: Any, sources: np.ndarray) -> np.ndarray:
    """A row for each source: paths are counted forward, shares of them added backward."""
    import graphblas as gb
    from graphblas import binary, monoid, semiring

    k, n = len(sources), A.nrows
    shape = {"dtype": "FP32", "nrows": k, "ncols": n}
    paths = gb.Matrix.from_coo(np.arange(k), sources, 1.0, **shape)
    front, waves = paths.dup(), [paths.dup()]
    while True:
        new = gb.Matrix(**shape)
        new(~paths.S) << front.mxm(A, semiring.plus_first)
        if not new.nvals:
            break
        waves.append(new)
        paths(binary.plus) << new
        front = new
    passed = gb.Matrix.from_scalar(1.0, k, n, "FP32")
    for here, before in zip(waves[:0:-1], waves[-2::-1], strict=True):
        share = gb.Matrix(**shape)
        share(here.S) << passed.ewise_mult(paths, binary.truediv)
        back = gb.Matrix(**shape)
        back(before.S) << share.mxm(A, semiring.plus_first)
        passed(binary.plus) << back.ewise_mult(paths, binary.times)
    for row, source in enumerate(sources):
        passed[row, source] = 1.0
    return passed.reduce_columnwise(monoid.plus).new().to_dense(0) - k


def _independent(A: Any) -> np.ndarray:
    """Luby's rounds: who draws more than every neighbour joins, neighbours leave."""
    import graphblas as gb
    from graphblas import binary, monoid, semiring

    n, draw = A.nrows, np.random.default_rng(0)
    degree = A.reduce_rowwise(monoid.plus).new()
    members = gb.Vector(bool, n)
    members(~degree.S) << True
    left = gb.Vector(bool, n)
    left(degree.S) << True
    while left.nvals:
        score = gb.Vector.from_dense(draw.random(n, np.float32) + 1e-6)
        score = score.dup(mask=left.S)
        most = gb.Vector("FP32", n)
        most(left.S) << A.mxv(score, semiring.max_second)
        wins = gb.Vector(bool, n)
        wins(left.S) << score.ewise_union(most, binary.gt, 0.0, 0.0)
        joins = wins.select("==", True).new()
        members(joins.S) << True
        beside = gb.Vector(bool, n)
        beside(left.S) << A.mxv(joins, semiring.any_pair)
        gone = joins.ewise_add(beside, monoid.lor).new()
        left = left.dup(mask=~gone.S)
    found = np.zeros(n, bool)
    found[members.to_coo()[0]] = True
    return found


LIBRARIES = {"SciPy": by_scipy, "igraph": by_igraph, "python-graphblas": by_graphblas}


def main(library: str, folder: pathlib.Path) -> None:
    """Prints a line for each algorithm of one library."""
    given = Input(*(sp.csr_array(sp.load_npz(folder / f"{name}.npz")) for name in "AB"))
    for name, call in LIBRARIES[library](given).items():
        start = time.perf_counter()
        answer = call()
        line = {"name": name, "seconds": time.perf_counter() - start}
        if isinstance(answer, np.ndarray):
            line["file"] = f"{library} {name}.npy"
            np.save(folder / line["file"], answer)
        else:
            line["answer"] = answer
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
