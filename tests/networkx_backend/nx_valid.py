"""Checks of results of which several are right: communities, labels, independent sets."""

import collections

import networkx as nx
import numpy as np


def partition(G, parts):
    parts = list(parts)
    assert all(isinstance(part, set) and part for part in parts)
    assert sum(map(len, parts)) == len(G) and set().union(*parts) == set(G)
    return parts


def modular(G, parts, weight="weight", resolution=1):
    """Modularity near that of NetworkX's own."""
    parts = partition(G, parts)
    if G.number_of_edges():
        how = {"weight": weight, "resolution": resolution}
        own = nx.community.louvain_communities.orig_func(G, **how, seed=1)
        best = nx.community.modularity(G, own, **how)
        assert nx.community.modularity(G, parts, **how) >= best - 0.1 * abs(best) - 0.02


def labelled(G, parts):
    """Each node has one of the most frequent labels of its neighbors."""
    label = {v: k for k, part in enumerate(partition(G, parts)) for v in part}
    for v in G:
        counts = collections.Counter(label[u] for u in G[v])
        assert not counts or counts[label[v]] == max(counts.values()), v


def independent(G, nodes):
    """No two are neighbors; every other node has a neighbor among them."""
    assert isinstance(nodes, list) and len(set(nodes)) == len(nodes)
    chosen = set(nodes)
    for v in G:
        near = (set(G[v]) - {v}) & chosen
        assert (v in chosen) != bool(near), v


def singular(G, value):
    """Singular vectors of the largest singular value, of sum or largest 1; there may be several."""
    A = nx.adjacency_matrix(G, dtype=float).toarray()
    h, a = (np.array([part[v] for v in G]) for part in value)
    square = np.linalg.norm(A, 2) ** 2
    np.testing.assert_allclose(A.T @ (A @ a), square * a, atol=1e-6 * square * abs(a).max())
    np.testing.assert_allclose(h / h.sum(), A @ a / (A @ a).sum(), atol=1e-6 * abs(h).max())
    sizes = (h.sum(), a.sum()), (h.max(), a.max())
    assert any(np.allclose(both, 1, atol=1e-9) for both in sizes)


VALID = {
    "asyn_lpa_communities": labelled,
    "fast_label_propagation_communities": labelled,
    "hits": singular,
    "label_propagation_communities": labelled,
    "louvain_communities": modular,
    "maximal_independent_set": independent,
}
