"""Eager products: the capacity of their results, and how many programs a loop of them compiles."""

import contextlib

import jax
import networkx as nx
import numpy as np

import jaxspv as jsp

N, NSE = 200, 8192


@contextlib.contextmanager
def compilations(step="backend_compile"):
    """A list that grows by an item for every program compiled (or traced) inside."""
    found = []

    def listen(event, duration, **_):
        if event == f"/jax/core/compile/{step}_duration":
            found.append(duration)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def graph(seed):
    """A graph of its own size in the common capacity, and the same for NetworkX."""
    G = nx.gnm_random_graph(N, 1500 + 40 * seed, seed)
    row, col = np.array(G.edges).T
    both = np.concatenate([row, col]), np.concatenate([col, row])
    return jsp.from_edges(*both, np.ones(2 * len(row), np.int32), shape=(N, N), nse=NSE), G


def truss(A, k):
    """The k-truss by masked products: edges in k - 2 triangles or more, until none is lost."""
    while True:
        support = jsp.mxm(A, A, jsp.semirings.plus_pair, mask=jsp.structure(A))
        kept = jsp.select(support, jsp.operators.valuege, k - 2)
        if int(kept.count) == int(A.count):
            return kept
        A = kept


def edges_of(A):
    row, col = A.to_scipy().nonzero()
    return {(int(i), int(j)) for i, j in zip(row, col, strict=True) if i < j}


def test_a_loop_of_masked_products_compiles_nothing_after_its_first_round():
    graphs = [graph(seed) for seed in range(4)]

    def both(A):
        return truss(A, 4), int(jsp.triangle_count(A).count)

    rounds = []
    with compilations() as compiled:
        both(graphs[0][0])
        first = len(compiled)
        rounds = [both(A) for A, _ in graphs]
    assert 0 < first == len(compiled)
    for (left, triangles), (_, G) in zip(rounds, graphs, strict=True):
        want = {tuple(sorted(e)) for e in nx.k_truss(G, 4).edges}
        assert 0 < len(want) < G.number_of_edges()
        assert edges_of(left) == want
        assert triangles == sum(nx.triangles(G).values()) // 3


def test_the_second_graph_of_a_bucket_compiles_nothing():
    """The same capacities of operands and results; sizes differ."""
    (A, _), (B, _) = graph(1), graph(2)
    with compilations() as compiled:
        first = jsp.mxm(A, A)
        programs = len(compiled)
        second = jsp.mxm(B, B)
    assert len(compiled) == programs
    assert int(first.count) != int(second.count) and first.nse == second.nse >= int(second.count)
    np.testing.assert_array_equal(second.todense(), B.to_scipy().toarray() @ B.to_scipy().toarray())
    exact = second.trim()
    assert exact.nse == int(second.count)
    np.testing.assert_array_equal(exact.todense(), second.todense())
    assert jsp.mxm(A, A, nse=first.nse + 5).nse == first.nse + 5


def test_a_second_product_of_a_pattern_traces_nothing():
    A, _ = graph(3)
    first = jsp.mxm(A, A)
    with compilations("jaxpr_trace") as traced:
        second = jsp.mxm(A, A)
    assert not traced
    np.testing.assert_array_equal(first.todense(), second.todense())
