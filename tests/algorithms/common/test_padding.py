"""Graphs with ghosts against the same without, and graphs of like sizes that share programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph

import jaxspv as jsp


def random_graph(n, entries, seed, symmetric=False):
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, n, (2, entries))
    A = sp.coo_array((rng.integers(1, 9, entries).astype(np.float32), tuple(ends)), shape=(n, n))
    A = sp.csr_array(A.maximum(A.T) if symmetric else A.tocsr())
    A.setdiag(0)
    A.eliminate_zeros()
    return jsp.from_scipy(A)


RUNS = {
    "bfs": lambda G: jsp.bfs(G, 3, deterministic=True),
    "bfs of several": lambda G: jsp.bfs(G, jnp.asarray([3, 5]), deterministic=True),
    "sssp": lambda G: jsp.sssp(G, 3, deterministic=True)[:2],
    "pagerank": lambda G: jsp.pagerank(G, tol=1e-7),
    "components": jsp.connected_components,
    "degrees": lambda G: (G.out_degrees, G.in_degrees),
    "triangles": lambda G: jsp.triangle_count(G.out),
}


def close(found, wanted, steps=0):
    found, wanted = jax.tree.leaves(found), jax.tree.leaves(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        # PageRank may end a step earlier or later: sums of other lengths are rounded otherwise.
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=steps if a.dtype == np.int32 else 1e-8)


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("name", RUNS)
def test_ghosts_change_nothing(name, prepared):
    A = random_graph(50, 80, 0, symmetric=name == "triangles")
    G, H = jsp.prepare(A, for_=()), jsp.pad(A, n=64, nse=200)
    if prepared:
        G, H = (jsp.prepare(x, for_=("bfs", "sssp", "pagerank", "mxv")) for x in (A, H))
        assert G.symmetric == H.symmetric
    found = RUNS[name](H)
    close(jsp.unpad(found, H), RUNS[name](G), steps=name == "pagerank")
    assert int(H.num_vertices) == 50 and H.n == 64 and H.nse == 200
    again = jax.jit(RUNS[name])(H) if name != "triangles" else found
    close(again, found)


def test_what_is_said_of_ghosts():
    H = jsp.pad(random_graph(50, 80, 0), n=64)
    assert (jsp.bfs(H, 0).levels[50:] == -1).all()
    assert jnp.isinf(jsp.sssp(H, 0).distances[50:]).all()
    assert (jsp.connected_components(H).labels[50:] == -1).all()
    scores = jsp.pagerank(H).scores
    assert (scores[50:] == 0).all() and abs(scores.sum() - 1) < 1e-5
    biased = jsp.pagerank(H, personalization=jnp.ones(64)).scores
    np.testing.assert_allclose(biased, scores, rtol=1e-5)


OFTEN = jnp.arange(64) % 50  # as many sources, pairs or paths as the padded graph has vertices
LISTED = {
    "paths": lambda G: jsp.k_shortest_paths(G, 3, 5, 4),
    "as many paths": lambda G: jsp.k_shortest_paths(G, 3, 5, 64),
    "as many sources": lambda G: jsp.bfs(G, OFTEN, deterministic=True),
    "as many pairs": lambda G: jsp.similarity(G, OFTEN, OFTEN[::-1]),
    "an order that ends early": jsp.topological_sort,
    "forest": jsp.minimum_spanning_forest,
    "all pairs": jsp.all_pairs_shortest_path_length,
    "neighbours": lambda G: jsp.learning.sample_neighbors(
        jax.random.key(0), G, OFTEN[:3], 4
    )._replace(slots=()),
    "in a list": lambda G: [jsp.topological_sort(G), (jsp.bfs(G, 0).levels, None)],
}


@pytest.mark.parametrize("name", LISTED)
def test_lists_of_vertices_end_as_without_ghosts(name):
    """Also where an axis is as long as the padded graph by chance."""
    A = random_graph(50, 80, 1)
    H = jsp.pad(A, n=64, nse=64 if int(A.count) <= 64 else 128)
    found, want = LISTED[name](H), LISTED[name](jsp.prepare(A, for_=()))
    close(jsp.unpad(found, H), want)


@pytest.mark.parametrize("format", ["csr", "coo", "csc", "ell"])
def test_unpad_cuts_matrices(format):
    """Of as many slots as the padded graph has vertices, which are no axis over vertices."""
    A = random_graph(50, 30, 1, symmetric=True)
    H = jsp.pad(A, n=64, nse=64)
    found = jsp.unpad([jsp.k_core(H, 1).asformat(format), H], H)
    assert found[1] is H and found[0].format == format
    np.testing.assert_array_equal(found[0].check_invariants().todense(), A.todense())
    with_ghosts = jsp.ewise_add(H.out, jsp.diag(jnp.ones(64)))
    want = np.asarray(A.todense()) + np.eye(50)
    np.testing.assert_array_equal(jsp.unpad(with_ghosts, H).todense(), want)


def test_unpad_leaves_graphs_without_ghosts():
    A = random_graph(20, 30, 0)
    G = jsp.prepare(A)
    result = jsp.bfs(G, 0)
    assert jsp.unpad(result, G) is result
    H = jsp.pad(A)
    assert (H.n, H.nse) == (20, 32 if A.nse > 28 else 28)


def test_spare_slots_may_go():
    A = random_graph(20, 30, 0)
    wide = jsp.pad(A, n=20, nse=60)
    again = jsp.pad(wide.out, n=20, nse=int(A.count))
    np.testing.assert_array_equal(again.out.todense(), A.todense())


@pytest.mark.parametrize("sizes", [{"n": 49}, {"nse": 3}, {"n": 2**31}])
def test_too_small_or_too_large(sizes):
    with pytest.raises(ValueError, match=next(iter(sizes))):
        jsp.pad(random_graph(50, 80, 0), **sizes)


@pytest.mark.long
def test_under_jit():
    A = random_graph(20, 30, 0)
    count = int(A.count)
    for nse in (count + 9, count, count - 3):
        H = jax.jit(lambda A, nse=nse: jsp.pad(A, n=32, nse=nse))(A)
        assert (H.n, H.nse, int(H.num_vertices)) == (32, nse, 20)
        assert bool(H.out.overflow) == (nse < count)
        if nse >= count:
            want = jsp.pad(A, n=32, nse=nse)
            close(H.out.check_invariants(), want.out)


def test_refused():
    A = random_graph(9, 20, 0)
    for G in (jsp.pad(A), jsp.prepare(A)):
        with pytest.raises(ValueError, match="before"):
            jsp.pad(G)
    with pytest.raises(ValueError, match="`nse` must be given under jit"):
        jax.jit(lambda A: jsp.pad(A).out.data)(A)
    with pytest.raises(TypeError, match="pad"):
        jsp.pad(np.eye(3))
    with pytest.raises(TypeError, match="`G` must be the Graph that `pad` gave; got CSR"):
        jsp.unpad(jnp.ones(3), random_graph(50, 80, 0))


def work(G):
    out = [jsp.bfs(G, 0), jsp.sssp(G, 0), jsp.pagerank(G), jsp.connected_components(G)]
    return jax.block_until_ready([*out, jsp.mxv(G, jnp.ones(G.n))])


def compiled(run):
    seen = []

    def listen(event, _, **__):
        if event.endswith("backend_compile_duration"):
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        run()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return len(seen)


def regular(n, seed):
    """Every vertex has 3 to 6 out-edges and in-edges, 4.5 on the average."""
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(n) for _ in range(6)]
    row = np.concatenate([*rows[:3], *(r[: n // 2] for r in rows[3:])])
    cols = [rng.permutation(n) for _ in range(6)]
    col = np.concatenate([*cols[:3], *(c[: n // 2] for c in cols[3:])])
    return jsp.from_edges(row, col, rng.random(len(row)).astype(np.float32), shape=(n, n))


def test_graphs_of_equal_shape_share_every_program():
    graphs = [jsp.pad(regular(900, seed), n=900, nse=4096).out for seed in (1, 2, 3)]
    purposes = ("bfs", "sssp", "pagerank", "mxv")
    assert compiled(lambda: work(jsp.prepare(graphs[0], for_=purposes))) > 0
    assert compiled(lambda: work(jsp.prepare(graphs[1], for_=purposes))) == 0
    assert compiled(lambda: work(jsp.prepare(graphs[2], for_=purposes))) == 0


def test_graphs_of_other_sizes_share_every_program_when_padded():
    sizes = ((500, 3000), (431, 2500), (611, 3100))
    graphs = [jsp.pad(random_graph(*s, 1), n=640, nse=4096) for s in sizes]
    assert compiled(lambda: work(graphs[0])) > 0
    assert compiled(lambda: [work(G) for G in graphs[1:]]) == 0


def test_a_host_pads_and_cuts_without_a_program():
    sizes = [(311, 900), (473, 1200)]
    graphs = [random_graph(*s, 1) for s in sizes]
    assert compiled(lambda: [jsp.pad(A, n=512 + A.nse, nse=2 * A.nse) for A in graphs]) == 0
    for A in graphs:
        H = jsp.pad(A, n=512)
        found = jsp.connected_components(H)
        assert compiled(lambda H=H, found=found: jsp.unpad(found, H)) == 0
        count, labels = csgraph.connected_components(A.to_scipy())
        assert int(found.count) == count == len(np.unique(jsp.unpad(found, H).labels))
        assert compiled(lambda H=H: jsp.pagerank(H, tol=1e-7)) == 1
