"""The BFS kernels, interpreted, against a queue in Python: every vertex, every mode."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.bfs import any_degree
from pallas_kernels.bfs.api import BFSConfig, bfs
from pallas_kernels.layouts.adjacency import Adjacency, prepare_bfs


def csr(n, edges, symmetric=True):
    """(indptr, indices) of directed edges, duplicates and loops kept."""
    s, d = np.array(edges, np.int64).reshape(-1, 2).T
    if symmetric:
        s, d = np.concatenate([s, d]), np.concatenate([d, s])
    order = np.lexsort((d, s))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(s, minlength=n))])
    return indptr.astype(np.int32), d[order].astype(np.int32)


def transpose(indptr, indices):
    n = len(indptr) - 1
    s = np.repeat(np.arange(n), np.diff(indptr))
    return csr(n, np.stack([indices, s], 1), symmetric=False)


def oracle(indptr, indices, source):
    """Levels by the definition."""
    levels = np.full(len(indptr) - 1, -1, np.int32)
    if not 0 <= source < len(levels):
        return levels
    levels[source], queue = 0, [source]
    for v in queue:
        for u in indices[indptr[v] : indptr[v + 1]]:
            if levels[u] < 0:
                levels[u] = levels[v] + 1
                queue.append(u)
    return levels


def check(indptr, indices, source, levels, parents, num_levels, status):
    expected = oracle(indptr, indices, source)
    np.testing.assert_array_equal(levels, expected)
    assert status == 0 and num_levels == expected.max(initial=-1) + 1
    if parents is None:
        return
    reached = expected >= 0
    assert (np.asarray(parents)[~reached] == -1).all()
    edges = set(
        zip(
            np.repeat(np.arange(len(levels)), np.diff(indptr)).tolist(),
            indices.tolist(),
            strict=True,
        )
    )
    parents = np.asarray(parents)  # an element of an array on a GPU costs a launch
    for v in np.flatnonzero(reached):
        p = int(parents[v])
        assert p == v if v == source else (p, v) in edges and expected[p] == expected[v] - 1


def path(n):
    return csr(n, [(i, i + 1) for i in range(n - 1)])


def star_with_tail(leaves):
    hub = [(0, i) for i in range(1, leaves)]
    return csr(leaves + 20, hub + [(i, i + 1) for i in range(leaves - 1, leaves + 15)])


def grid(k):
    right = [(i * k + j, i * k + j + 1) for i in range(k) for j in range(k - 1)]
    return csr(k * k, right + [(a // k + a % k * k, b // k + b % k * k) for a, b in right])


def random_graph(n, m, seed, symmetric=True):
    return csr(n, np.random.default_rng(seed).integers(0, n, (m, 2)), symmetric)


GRAPHS = {
    "one vertex": csr(1, np.zeros((0, 2), int)),
    "no edges": csr(7, np.zeros((0, 2), int)),
    "loops": csr(3, [(0, 0), (0, 1), (1, 1), (1, 2), (1, 2)]),
    "path": path(150),
    "star with a tail": star_with_tail(300),
    "grid": grid(17),
    "disconnected": csr(90, [(i, i + 1) for i in range(30)] + [(i, i + 3) for i in range(40, 85)]),
    "random": random_graph(300, 900, 0),
    "dense": random_graph(130, 3000, 1),
    "degree up to 20": csr(
        100, [(i // 20, i) for i in range(100)] + [(i, i + 1) for i in range(99)]
    ),
}


def together(names):
    """One graph of several: a kernel is compiled for a size, so few sizes cost little."""
    indptr, indices, n = [np.zeros(1, np.int32)], [], 0
    for name in names:
        rows, heads = GRAPHS[name]
        indptr.append(rows[1:] + indptr[-1][-1])
        indices.append(heads + n)
        n += len(rows) - 1
    return np.concatenate(indptr).astype(np.int32), np.concatenate(indices).astype(np.int32)


NATIVE = {
    "no edges": GRAPHS["no edges"],
    "small degrees": together(("loops", "path", "grid", "disconnected", "degree up to 20")),
    "any degree": together(GRAPHS),
}
SMALL = {
    "ctas": 1,
    "threads": 64,
    "interpret": True,
    "queue": 16,
    "solo_in": 8,
    "solo_out": 12,
    "span": 4,
    "solo_edges": 16,
    "buffer": 64,
    "pull_edges": 16,
}
NARROW = {
    "alone": SMALL | {"queue": 512, "solo_in": 400, "solo_out": 500},
    "mixed": SMALL,
    "together": SMALL | {"solo_in": 0, "ctas": 3},
    "global bits": SMALL | {"shared_bits": False},
    "local queues": SMALL
    | {"solo_in": 4, "solo_out": 6, "ctas": 3, "shared_bits": False, "local_most": 10**6},
    "uneven queues": SMALL | {"queue": 8, "solo_in": 2, "solo_out": 3, "ctas": 3, "local_most": 24},
    "overflowing queue": SMALL | {"queue": 16, "solo_in": 16, "solo_out": 16},
}
ANY_DEGREE = {
    "mixed": SMALL,
    "push": SMALL | {"alpha": 0.0, "ctas": 3, "solo_edges": 0},
    "pull": SMALL | {"alpha": 1e9, "pull_edges": 0, "solo_edges": 0, "beta": 10**6},
    "alone": SMALL | {"solo_edges": 10**6},
    "sampled": SMALL | {"sampled": 0, "many": 0, "pull_edges": 4, "solo_edges": 4, "ctas": 3},
    "full buffer": SMALL | {"alpha": 0.0, "ctas": 2, "solo_edges": 0, "buffer": 8, "span": 2},
    "leftovers": SMALL
    | {
        "alpha": 1e9,
        "pull_edges": 0,
        "solo_edges": 0,
        "beta": 10**6,
        "unroll": 1,
        "lane_probes": 0,
    },
    "no room for leftovers": SMALL
    | {"alpha": 1e9, "pull_edges": 0, "solo_edges": 0, "buffer": 1, "lane_probes": 0},
    "back and forth": SMALL
    | {"alpha": 1e9, "pull_edges": 0, "solo_edges": 0, "beta": 1, "ctas": 2},
}


def search(graph, source, config, prepared, **options):
    f = jax.jit(functools.partial(bfs, config=BFSConfig(**config), **options))
    return f(
        Adjacency(*map(jnp.asarray, graph)), source, prepared=jax.tree.map(jnp.asarray, prepared)
    )


@pytest.mark.parametrize("mode", NARROW)
@pytest.mark.parametrize("name", GRAPHS)
def test_low_degree(name, mode):
    graph = GRAPHS[name]
    n = len(graph[0]) - 1
    if np.diff(graph[0]).max() > 64 or np.diff(graph[0]).mean() > 8:
        pytest.skip("no fixed-width adjacency")
    prepared = prepare_bfs(*graph)
    for source in (0, n // 2):
        check(*graph, source, *search(graph, source, NARROW[mode], prepared))


@pytest.mark.parametrize("mode", ANY_DEGREE)
@pytest.mark.parametrize("name", GRAPHS)
def test_any_degree(name, mode):
    graph = GRAPHS[name]
    n = len(graph[0]) - 1
    prepared = prepare_bfs(*graph)
    for extra in ({}, prepared) if "first" in prepared else ({},):
        for source in (0, n // 2):
            check(*graph, source, *search(graph, source, ANY_DEGREE[mode], extra))


@pytest.mark.parametrize("mode", ANY_DEGREE)
def test_directed(mode):
    graph = random_graph(200, 700, 3, symmetric=False)
    back = transpose(*graph)
    options = {"symmetric": False}
    check(*graph, 5, *search(graph, 5, ANY_DEGREE[mode], {}, **options))
    check(*graph, 5, *search((*graph, *back), 5, ANY_DEGREE[mode], {}, **options))


def steps_of(monkeypatch, graph, source, config, prepared=None):
    """The names of the steps of a search that is right, in their order."""
    steps = []

    def noting(name, method):
        def step(self, *args):
            steps.append(name)
            return method(self, *args)

        return step

    for name in ("push_level", "pull_level", "make_queue", "solo_level"):
        method = getattr(any_degree.Search, name)
        monkeypatch.setattr(any_degree.Search, name, noting(name, method))
    check(*graph, source, *search(graph, source, config, prepared or {}))
    return steps


def test_no_level_follows_when_all_are_visited(monkeypatch):
    leaves = csr(300, [(0, i) for i in range(1, 300)])
    for prepared in ({}, prepare_bfs(*leaves)):
        assert steps_of(monkeypatch, leaves, 0, ANY_DEGREE["push"], prepared) == ["push_level"]
        monkeypatch.undo()
    # without edges into it, the source is among the isolated ones, and is counted once
    graph = csr(100, [(0, i) for i in range(1, 99)] + [(98, 99)], symmetric=False)
    prepared = prepare_bfs(*graph, *transpose(*graph))
    options = {"symmetric": False}
    whole = (*graph, *transpose(*graph))
    check(*graph, 0, *search(whole, 0, ANY_DEGREE["push"], prepared, **options))


def test_a_sample_tells_what_edges_lead_to(monkeypatch):
    """Exactly, where each edge is a range of its own and there are as many threads."""
    graph = GRAPHS["star with a tail"]
    degree, levels = np.diff(graph[0]), oracle(*graph, 5)
    asked = []

    def sampled(self, s):
        edges = any_degree.Search.of_sample(self, s)
        sent = edges.v[self.k.mask]
        asked.append((int(s.level.v[0]), float(sent[0])))
        assert (sent == sent[0]).all()
        return edges

    monkeypatch.setattr(
        any_degree.Search, "of_sample", any_degree.Search.sampled_edges, raising=False
    )
    monkeypatch.setattr(any_degree.Search, "sampled_edges", sampled)
    config = SMALL | {"solo_edges": 0, "span": 1, "threads": 512, "ctas": 2, "sampled": 0}
    config |= {"many": 0}
    check(*graph, 5, *search(graph, 5, config | {"buffer": 512}, {}))
    assert len(asked) > 3
    for level, edges in asked:
        heads = [
            u
            for v in np.flatnonzero(levels == level)
            for u in graph[1][graph[0][v] : graph[0][v + 1]]
        ]
        assert edges == sum(degree[u] for u in heads if levels[u] == level + 1)


@pytest.mark.parametrize("name", ["grid", "dense"])
@pytest.mark.parametrize("source", [-1, 10**6, -(2**31)])
def test_source_out_of_range(name, source):
    graph = GRAPHS[name]
    check(*graph, source, *search(graph, source, SMALL, prepare_bfs(*graph)))


@pytest.mark.parametrize("kind", ["low_degree", "any_degree", "any_degree, pull"])
def test_stop(kind):
    graph = GRAPHS["grid"]
    prepared = prepare_bfs(*graph) if kind == "low_degree" else {}
    config = ANY_DEGREE["pull"] if kind == "any_degree, pull" else SMALL
    full = oracle(*graph, 0)
    for target, other in ((40, 288), (0, 1), (288, 500)):
        wanted = [t for t in (target, other) if t < len(full)]
        for stop, depth in (
            (lambda level, reached, unchanged: reached[0] | reached[1], min(full[wanted])),
            (
                lambda level, reached, unchanged: (reached[0] & reached[1]) | (level >= 9),
                min(9, max(full[wanted])),
            ),
        ):
            out = search(graph, 0, config, prepared, targets=jnp.array([target, other]), stop=stop)
            np.testing.assert_array_equal(out[0], np.where(full <= depth, full, -1))
            assert out[2] == depth + 1 and out[3] == 0


def test_levels_alone():
    graph = GRAPHS["grid"]
    for prepared in ({}, prepare_bfs(*graph)):
        out = search(graph, 3, SMALL, prepared, parents=False)
        assert out[1] is None
        check(*graph, 3, *out)


def test_many_traversals_in_a_scan():
    graph = GRAPHS["random"]

    def one(source, _):
        levels, *_ = bfs(Adjacency(*map(jnp.asarray, graph)), source, config=BFSConfig(**SMALL))
        return jnp.argmax(levels).astype(jnp.int32), levels

    _, levels = jax.jit(lambda s: jax.lax.scan(one, s, length=3))(jnp.int32(0))
    source = 0
    for row in np.asarray(levels):
        np.testing.assert_array_equal(row, oracle(*graph, source))
        source = int(row.argmax())


def test_vmap_is_refused():
    graph = Adjacency(*map(jnp.asarray, GRAPHS["path"]))
    with pytest.raises(NotImplementedError, match="grid barrier"):
        jax.vmap(lambda s: bfs(graph, s, config=BFSConfig(**SMALL))[0])(jnp.arange(3))


def test_fixed_width_holds_every_edge():
    graph = GRAPHS["degree up to 20"]
    table = prepare_bfs(*graph)["adjacency"]
    n, width = len(graph[0]) - 1, table.shape[1]
    quads = table.reshape(-1, 4)
    for v in range(n):
        row, found = table[v], []
        while True:
            found += [x for x in row if 0 <= x < n]
            if row[-1] >= 0:
                break
            row = quads[~row[-1]]
        assert width % 4 == 0 and sorted(found) == sorted(graph[1][graph[0][v] : graph[0][v + 1]])
