"""Generators: their structure against SciPy and NetworkX, their laws, and that keys decide all."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import Delaunay

import jaxspv as jsp
from jaxspv.formats import FORMATS
from jaxspv.generators import graphs as generators
from jaxspv.generators.graphs import distinct, random_generator

KEY = jax.random.key(7)

pytestmark = pytest.mark.fast


def simple(head, tail, n, symmetric=True):
    """The graph of an edge list by SciPy: no self loops, no repetitions, ones."""
    A = sp.coo_array((np.ones(len(head)), (head, tail)), shape=(n, n)).toarray()
    A = A + A.T if symmetric else A
    return (A > 0) & ~np.eye(n, dtype=bool)


def quadrants(key, scale, edges, a=0.57, b=0.19, c=0.19):
    """R-MAT's draws one level after the other, in NumPy."""
    head, tail = np.zeros(edges, int), np.zeros(edges, int)
    for _ in range(scale):
        key, draw = jax.random.split(key)
        r = np.asarray(jax.random.uniform(draw, (edges,)))
        at = np.searchsorted(np.array([a, a + b, a + b + c], np.float32), r, side="right")
        head, tail = 2 * head + at // 2, 2 * tail + at % 2
    return head, tail, np.asarray(jax.random.permutation(key, 1 << scale))


@pytest.mark.parametrize("permute", [True, False])
@pytest.mark.parametrize("symmetric", [True, False])
def test_rmat_is_its_definition(symmetric, permute):
    head, tail, relabel = quadrants(jax.random.key(0), 8, 44 << 8)
    if permute:
        head, tail = relabel[head], relabel[tail]
    A = jsp.generators.rmat(jax.random.key(0), 8, 44, symmetric=symmetric, permute=permute)
    np.testing.assert_array_equal(A.todense(), simple(head, tail, 256, symmetric))
    assert A.dtype == np.float32


def test_rmat_takes_odds_that_add_up_to_one_but_for_rounding():
    assert 1 - 0.8 - 0.1 - 0.1 < 0
    row, col = map(np.asarray, jsp.generators.rmat(KEY, 6, a=0.8, b=0.1, c=0.1, permute=False,
                                                   symmetric=False).rowcol())  # fmt: skip
    assert row.size and not (row & col).any()  # no edge falls into the lower right quadrant


def test_rmat_on_a_device_is_that_on_the_host():
    """The XLA path of accelerators, on this machine's device."""
    rng = np.random.default_rng(0)
    head, tail = rng.integers(50, size=(2, 400)).astype(np.int32)
    for symmetric in (True, False):
        row, col, keep = generators._mark(jnp.asarray(head), jnp.asarray(tail), symmetric)
        row, col = generators._compact(row, col, keep, int(keep.sum()))
        want = generators.simple_graph(head, tail, 50, symmetric=symmetric, format="coo")
        np.testing.assert_array_equal(row, want.row)
        np.testing.assert_array_equal(col, want.col)


@pytest.mark.gpu
def test_rmat_on_a_gpu_is_that_on_a_cpu():
    A = jsp.generators.rmat(jax.random.key(0), 12, 44)
    with jax.default_device(jax.devices("cpu")[0]):
        B = jsp.generators.rmat(jax.random.key(0), 12, 44)
    np.testing.assert_array_equal(A.indptr, B.indptr)
    np.testing.assert_array_equal(A.indices, B.indices)


def test_rmat_has_hubs():
    lengths = np.diff(jsp.generators.rmat(KEY, 10, 8).indptr)
    uniform = np.diff(jsp.generators.rmat(KEY, 10, 8, a=0.25, b=0.25, c=0.25).indptr)
    assert lengths.max() > 5 * uniform.max() and lengths.var() > 10 * uniform.var()


@pytest.mark.parametrize(("rows", "cols"), [(4, 7), (5, None), (1, 6), (0, 3), (1, 1)])
def test_grid(rows, cols):
    A = jsp.generators.grid2d(None, rows, cols)
    want = nx.to_numpy_array(nx.grid_2d_graph(rows, cols or rows))
    np.testing.assert_array_equal(A.todense(), want.reshape(A.shape))


def test_grid_drops_edges():
    full = jsp.generators.grid2d(None, 60)
    A = jsp.generators.grid2d(KEY, 60, drop=0.1)
    B = A.to_scipy()
    assert (B != B.T).nnz == 0 and (full.to_scipy() - B).min() == 0
    share = 1 - int(A.count) / int(full.count)
    assert abs(share - 0.1) < 0.02, "five standard deviations"
    assert int(jsp.generators.grid2d(KEY, 5, drop=1.0).count) == 0


def test_delaunay():
    A = jsp.generators.delaunay(KEY, 50)
    points = random_generator(KEY).random((50, 2))
    corners = Delaunay(points).simplices
    pairs = [(t[i], t[j]) for t in corners for i, j in ((0, 1), (1, 2), (2, 0))]
    want = simple(*np.array(pairs).T, 50)
    np.testing.assert_array_equal(A.todense(), want)
    assert nx.check_planarity(nx.from_numpy_array(want))[0]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("m", [0, 1, 30, 35, 45])
def test_erdos_renyi_has_m_edges(m, directed):
    A = jsp.generators.erdos_renyi(KEY, 10, m=m, directed=directed)
    dense = np.asarray(A.todense())
    assert dense.sum() == (m if directed else 2 * m) and not dense.diagonal().any()
    assert directed or (dense == dense.T).all()


def test_erdos_renyi_counts_and_covers():
    counts, seen = [], np.zeros((4, 4))
    for seed in range(60):
        key = jax.random.key(seed)
        A = places(jsp.generators.erdos_renyi(key, 4, p=0.5, directed=True, format="coo"))
        counts.append(A.sum())
        seen += A
    assert abs(np.mean(counts) - 6) < 5 * np.sqrt(3 / 60) and np.var(counts) > 1
    assert not seen.diagonal().any()
    off = seen[~np.eye(4, dtype=bool)]
    assert off.min() > 10 and off.max() < 50, "60 fair coins each"
    assert int(jsp.generators.erdos_renyi(KEY, 5, p=1.0).count) == 20
    assert int(jsp.generators.erdos_renyi(KEY, 5, p=0.0).count) == 0


def test_pairs_are_counted_right_where_roots_round():
    k = np.array(
        [
            0,
            1,
            2,
            2**31 - 1,
            2**52 - 1,
            2**52,
            2**60 + 1,
            *(i * (i - 1) // 2 + d for i in (3 * 10**8, 2**30, 2**30 + 1) for d in (-1, 0, 1)),
        ]
    )
    i, j = generators._unrank(k)
    assert ((0 <= j) & (j < i)).all()
    assert [int(a) * (int(a) - 1) // 2 + int(b) for a, b in zip(i, j, strict=True)] == k.tolist()


@pytest.mark.parametrize(("population", "k"), [(10, 0), (10, 4), (10, 9), (0, 0), (2**40, 50)])
def test_distinct(population, k):
    drawn = distinct(np.random.default_rng(0), population, k)
    assert len(set(drawn.tolist())) == k and all(0 <= v < population for v in drawn)


@pytest.mark.parametrize("key", [0, None, "key", np.arange(3.0), jax.random.split(KEY, 2)])
def test_the_key_comes_first(key):
    for call in (
        lambda: jsp.generators.rmat(key, 3),
        lambda: jsp.generators.grid2d(key, 3, drop=0.5),
        lambda: jsp.generators.delaunay(key, 5),
        lambda: jsp.generators.erdos_renyi(key, 5, m=2),
    ):
        with pytest.raises(ValueError, match=r"`key` must be one key, as of jax\.random\.key"):
            call()


def places(A):
    """(m, n) presence of a COO, in NumPy: every graph has another size, so JAX would compile."""
    dense = np.zeros(A.shape, bool)
    dense[np.asarray(A.row), np.asarray(A.col)] = True
    return dense


# ---- What all of them share ----

MAKERS = {
    "rmat": lambda key, **k: jsp.generators.rmat(key, 5, 4, **k),
    "grid2d": lambda key, **k: jsp.generators.grid2d(key, 6, drop=0.5, **k),
    "delaunay": lambda key, **k: jsp.generators.delaunay(key, 20, **k),
    "erdos_renyi": lambda key, **k: jsp.generators.erdos_renyi(key, 20, p=0.3, **k),
}


@pytest.mark.once
@pytest.mark.parametrize("name", MAKERS)
def test_keys_decide(name):
    make = MAKERS[name]
    A, B, C = (places(make(jax.random.key(s), format="coo")) for s in (1, 1, 2))
    assert (A == B).all() and (A != C).any()
    old = places(make(jax.random.PRNGKey(1), format="coo"))
    np.testing.assert_array_equal(old, A)
    for format in FORMATS:
        again = make(jax.random.key(1), format=format)
        assert again.format == format
        np.testing.assert_array_equal(again.to_scipy().toarray() > 0, A)
    for bad in (0, None, "key", jax.random.split(jax.random.key(0), 2)):
        with pytest.raises(ValueError, match="`key`"):
            make(bad)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore:Raw arrays as random keys")
@pytest.mark.parametrize("name", MAKERS)
def test_raw_keys_stay_keys_where_new_ones_are_typed(name):
    make, raw = MAKERS[name], jax.random.PRNGKey(1)
    want = places(make(raw, format="coo"))
    with jax.enable_custom_prng(True):
        np.testing.assert_array_equal(places(make(raw, format="coo")), want)
        with pytest.raises(ValueError, match="`key`"):
            make(np.uint32(1))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jsp.generators.rmat(KEY, -1), ValueError, "scale.*-1"),
        (lambda: jsp.generators.rmat(KEY, 3.0), TypeError, "scale.*3.0"),
        (lambda: jsp.generators.rmat(KEY, 26, 100), ValueError, "int64"),
        (lambda: jsp.generators.rmat(KEY, 3, a=0.9, b=0.2), ValueError, "odds"),
        (lambda: jsp.generators.grid2d(KEY, 3, drop=2), ValueError, "drop.*2"),
        (lambda: jsp.generators.grid2d(None, -3), ValueError, "rows.*-3"),
        (lambda: jsp.generators.delaunay(KEY, 2), ValueError, "n.*3.*2"),
        (lambda: jsp.generators.erdos_renyi(KEY, 5), ValueError, "exactly one"),
        (lambda: jsp.generators.erdos_renyi(KEY, 5, p=0.5, m=3), ValueError, "exactly one"),
        (lambda: jsp.generators.erdos_renyi(KEY, 5, p=1.5), ValueError, "p.*1.5"),
        (lambda: jsp.generators.erdos_renyi(KEY, 5, m=11), ValueError, "m.*10.*11"),
        (lambda: jsp.generators.rmat(KEY, 3, format="xyz"), ValueError, "csr.*xyz"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
