"""Shortest paths over edges of length 0, interpreted: parents are trees all the same."""

import itertools

import numpy as np
import pytest
from test_sssp_kernel import SMALL, check, search, symmetric_weights

from pallas_kernels.layouts.lengths import prepare_sssp
from pallas_kernels.sssp import any_degree, tree
from tests.kernels.bfs.test_bfs_kernel import GRAPHS


@pytest.mark.parametrize("symmetric", [False, True])
def test_vertices_whose_notes_are_lost_find_parents(monkeypatch, symmetric):
    """Two of three notes are overwritten by others, as races may."""

    def stale(self, vertex, parent, slot, mask):
        k, lost = self.k, vertex % 3 != 0
        k.store_pair(self.m.noted, 2 * vertex, k.where(lost, vertex, parent), slot, mask=mask)

    monkeypatch.setattr(any_degree.AnyDegree, "note", stale)
    for name, dtype in (("random", np.float32), ("star with a tail", np.int32)):
        graph = GRAPHS[name]
        weights = symmetric_weights(graph, dtype)
        weights[weights % 3 == 0] = 0  # a note that leads to its own vertex is tight
        config = SMALL | {"ctas": 2}
        check(graph, weights, 1, search(graph, weights, 1, 30, config, {}, symmetric=symmetric))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("phase", ["search", "find_orphans"])
def test_no_queue_is_read_after_a_barrier_expired(monkeypatch, phase, symmetric):
    """Its places may hold what no thread wrote: vertices anywhere."""
    kernel, phases = any_degree.AnyDegree, ["_find_parents", "_queue_parents"]

    def unreachable(self, s):
        raise AssertionError("a queue is read")

    def expires(self, s, *words):
        found = barrier(self, s, *words)
        s.ok = self.k.where(s.stage == tree.CHECK, 0, s.ok)
        return found

    first, barrier = kernel.first_state, kernel.barrier
    for name in phases + ["find_orphans"] * (phase == "search"):
        monkeypatch.setattr(kernel, name, unreachable)
    if phase == "search":
        monkeypatch.setattr(kernel, "first_state", lambda self, near, ok: first(self, near, ok * 0))
    else:
        monkeypatch.setattr(kernel, "barrier", expires)
    graph = GRAPHS["random"]
    weights = symmetric_weights(graph, np.int32)
    assert search(graph, weights, 1, 30, SMALL, {}, symmetric=symmetric)[3] == 1


def chains(lengths, symmetric):
    """(indptr, indices), weights: after an edge of weight 8 each, chains of edges of weight 0 from
    a path of weight 8, the last vertex of a chain in a cycle of weight 0 with the three before."""
    edges, n = [], len(lengths)
    edges += [(i, i + 1, 8) for i in range(n - 1)]
    for i, length in enumerate(lengths):
        chain = list(range(n, n + length + 1))
        n += length + 1
        edges += [(i, chain[0], 8)] + [(u, v, 0) for u, v in itertools.pairwise(chain)]
        edges += [(chain[-1], chain[max(0, length - 3)], 0)] * (length > 1)
    edges = np.array(edges)
    if symmetric:
        edges = np.unique(np.r_[edges, edges[:, [1, 0, 2]]], axis=0)
    order = np.random.default_rng(3).permutation(n)  # ids tell nothing of the way
    tail, head = order[edges[:, 0]], order[edges[:, 1]]
    place = np.lexsort((head, tail))
    indptr = np.searchsorted(tail[place], np.arange(n + 1)).astype(np.int32)
    return (indptr, head[place].astype(np.int32)), edges[place, 2], int(order[0])


@pytest.mark.parametrize("kind", ["low_degree", "renumbered", "any_degree"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_chains_and_cycles_of_length_zero(kind, symmetric):
    """The second time in sums near 2^25, which absorb a weight of 0.5."""
    graph, weights, source = chains([*range(1, 6), 40, 17], symmetric)
    for w in (weights.astype(np.int32), np.where(weights, 2.0**25, 0.5).astype(np.float32)):
        prepared = {}
        if kind != "any_degree":
            prepared = prepare_sssp(*graph, w, renumber=kind == "renumbered")
            assert prepared
        config = SMALL if w.dtype == np.int32 else SMALL | {"ctas": 3, "hops": 50}
        out = search(graph, w, source, 8, config, prepared, symmetric=symmetric)
        check(graph, w, source, out)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("grid", "low_degree"),
        ("star with a tail", "any_degree"),
        ("star with a tail", "any_degree, symmetric"),
    ],
)
def test_zeros_everywhere_and_in_half(name, kind):
    graph = GRAPHS[name]
    half = symmetric_weights(graph, np.int32)
    half[half % 2 == 0] = 0
    for weights in (np.zeros_like(half), half):
        prepared = prepare_sssp(*graph, weights) if kind == "low_degree" else {}
        assert bool(prepared) == (kind == "low_degree")
        options = {"symmetric": kind == "any_degree, symmetric"}
        config = SMALL | {"ctas": 2}
        check(graph, weights, 2, search(graph, weights, 2, 20, config, prepared, **options))
