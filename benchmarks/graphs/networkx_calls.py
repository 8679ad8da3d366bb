"""NetworkX calls without and with the backend: the same call on a converted and on a new graph."""

from __future__ import annotations

import importlib.metadata
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from jaxspv.networkx_backend.info import get_info

from ..harness import Candidate, measure, within
from ..options import Options
from ..suite import Workload
from .algorithms import LONGEST_S

LARGE_ENTRIES = 100_000  # "data" stands for the graphs with more
SAMPLED = 4  # sources of what starts from every vertex


def register() -> None:
    """Makes NetworkX know the backend in this process, where no installation told it."""
    backends = nx.utils.backends
    if "jaxspv" in backends.backends:
        return
    where = "jaxspv.networkx_backend:backend"
    entry = importlib.metadata.EntryPoint("jaxspv", where, "networkx.backends")
    backends.backends["jaxspv"] = entry
    backends.backend_info["jaxspv"] = get_info()
    calls = backends._dispatchable
    calls.__call__ = calls._call_if_any_backends_installed  # pyright: ignore


def graph_of(workload: Workload) -> Any:
    """The NetworkX graph, undirected where its pattern is symmetric, with lengths on the edges."""
    A = workload.weighted().tocoo()
    pattern = workload.matrix()
    undirected = (pattern != 0).nnz == (pattern + pattern.T != 0).nnz
    G = nx.Graph() if undirected else nx.DiGraph()
    G.add_nodes_from(range(A.shape[0]))
    lengths = A.data.astype(np.int64).tolist()
    ends = zip(A.row.tolist(), A.col.tolist(), lengths, strict=True)
    G.add_weighted_edges_from(ends, weight="length")
    return G


def cases(G: Any, source: int) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Name and call: `call(backend=)`; what starts from every vertex by a few of them."""

    def call(name: str, *args: Any, **kwargs: Any):
        function = getattr(nx, name)
        return name, lambda **on: function(G, *args, **kwargs, **on)

    some = list(itertools.islice(G, source, source + SAMPLED)) or list(G)[:SAMPLED]
    yield call("pagerank")
    yield call("single_source_shortest_path_length", source)
    yield call("single_source_dijkstra_path_length", source, weight="length")
    yield call("harmonic_centrality", some)
    yield call("betweenness_centrality", k=SAMPLED, seed=0)
    yield call("is_bipartite")
    yield call("katz_centrality", alpha=1e-4)
    yield call("clustering")
    if G.is_directed():
        yield call("number_strongly_connected_components")
        yield call("number_weakly_connected_components")
        return
    yield call("number_connected_components")
    yield call("eigenvector_centrality", max_iter=1000, tol=1e-5)
    yield call("triangles")
    yield call("transitivity")
    yield call("average_clustering")
    if not nx.number_of_selfloops(G):
        yield call("core_number")


def same(found: Any, wanted: Any) -> None:
    """Equal numbers, up to rounding, under equal labels."""
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
        return
    if not isinstance(wanted, dict):
        assert math.isclose(found, wanted, rel_tol=1e-6), f"{found} is not {wanted}."
        return
    assert found.keys() == wanted.keys(), "other nodes."
    a = np.array([found[v] for v in wanted], float)
    b = np.array(list(wanted.values()), float)
    wrong = np.flatnonzero(~np.isclose(a, b, rtol=1e-5, atol=1e-7))
    assert not len(wrong), f"{len(wrong)} numbers are wrong, the first {a[wrong[0]]}."


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph: NetworkX, the backend on a converted graph, and on one anew."""
    register()
    nx.config.warnings_to_ignore.add("cache")
    G, found = graph_of(workload), []
    for name, call in cases(G, workload.start()):
        networkx = within(LONGEST_S, lambda call=call: call(backend="networkx"))
        try:
            wanted = networkx()
        except TimeoutError as error:
            found.append({"program": "NetworkX", "error": f"{name} {error}"})
            continue

        def check(result, wanted=wanted):
            same(result, wanted)

        def anew(call=call):
            G.__networkx_cache__.clear()  # as it is for a second graph of the same bucket
            return call(backend="jaxspv")

        mine = Candidate("jaxspv", lambda call=call: call(backend="jaxspv"), check)
        candidates = [Candidate("jaxspv, new graph", anew, check), mine]
        if options.baselines:
            candidates.append(Candidate("NetworkX", networkx, check))
        records = measure(candidates, **options.timing())
        for record in records:
            record.update(n=len(G), entries=workload.matrix().nnz, call=name)
            record["case"] = f"{workload.name} {name}"
        found += records
    return found
