"""Samples of neighbours and walks: marginals by chi-square, distinctness, equal keys, sizes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from scipy.special import chdtrc  # its tail; scipy.stats takes long to import

import jaxspv as jsp
from jaxspv.learning import neighbors as draws

KEY = jax.random.key(0)
LEAST = 1e-4  # of a p-value: keys are fixed, and so is what is tested


def star(degree, extra=3):
    """Vertex 0 with `degree` neighbours 1, 2, ..., which all lead back; padding at the end."""
    leaves = np.arange(1, degree + 1)
    A = jsp.from_edges(
        np.concatenate([0 * leaves, leaves]),
        np.concatenate([leaves, 0 * leaves]),
        shape=(degree + 1 + extra, degree + 1 + extra),
        nse=2 * degree + 5,
    )
    return A


def uniform(counts, odds=None):
    odds = np.full(len(counts), 1 / len(counts)) if odds is None else np.asarray(odds)
    expected = np.sum(counts) * odds / np.sum(odds)
    return chdtrc(len(odds) - 1, np.sum((counts - expected) ** 2 / expected))


# ---- Draws ----


def test_below_is_the_high_half_of_the_product():
    rng = np.random.default_rng(0)
    draw = np.append(rng.integers(0, 2**32, 500), [0, 2**32 - 1, 2**31]).astype(np.uint32)
    for bound in (0, 1, 2, 3, 1000, 65536, 65537, 2**31 - 1):
        want = (draw.astype(object) * bound) >> 32
        got = draws.below(jnp.asarray(draw), jnp.int32(bound))
        assert got.tolist() == want.tolist()


def test_logarithms_are_close():
    x = np.append(np.random.default_rng(0).integers(1, 2**32, 999), [1, 2**32 - 1]).astype(
        np.uint32
    )
    got = draws.log2_of_integer(jnp.asarray(x)) / 2**draws.UNIT
    np.testing.assert_allclose(got, np.log2(x.astype(float)), atol=1e-6)
    f = np.float32([1e-37, 0.3, 1, 1.5, 7e30])
    got = draws.log2_of_float(jnp.asarray(f)) / 2**draws.UNIT
    np.testing.assert_allclose(got, np.log2(f.astype(float)), atol=1e-5)


# ---- Neighbours ----


@pytest.mark.parametrize("size", [1, 3, 20])
@pytest.mark.parametrize("replace", [False, True])
def test_every_neighbour_is_as_likely(size, replace):
    degree, many = 25, 4000
    found = jsp.learning.sample_neighbors(
        KEY, star(degree), np.zeros(many, int), size, replace=replace
    )
    nodes = np.asarray(found.nodes[0])
    assert nodes.shape == (many, size) and nodes.min() >= 1 and nodes.max() <= degree
    counts = np.bincount(nodes.ravel(), minlength=degree + 1)[1:]
    if replace:
        assert uniform(counts) > LEAST
    else:
        assert (np.diff(np.sort(nodes, axis=1), axis=1) > 0).all()
        # Counts of sets vary less than the multinomial's: each draw is one of (d - f) / (d - 1).
        p = size / degree
        chi = np.sum((counts - many * p) ** 2) / (many * p * (1 - p)) * (degree - 1) / degree
        assert chdtrc(degree - 1, chi) > LEAST


def test_every_set_is_as_likely():
    found = jsp.learning.sample_neighbors(KEY, star(5), np.zeros(6000, int), 2)
    sets = [frozenset(row) for row in np.asarray(found.nodes[0]).tolist()]
    counts = [sets.count(frozenset(c)) for c in itertools.combinations(range(1, 6), 2)]
    assert sum(counts) == 6000 and uniform(counts) > LEAST


@pytest.mark.parametrize("replace", [False, True])
def test_weights_are_odds(replace):
    degree, many = 40, 8000  # more than are looked at together
    A = star(degree)
    weights = np.full(A.nse, np.nan, np.float32)
    odds = np.arange(degree) % 5  # every fifth never
    weights[:degree] = odds
    found = jsp.learning.sample_neighbors(
        KEY, A, np.zeros(many, int), 2, replace=replace, weights=weights
    )
    nodes = np.asarray(found.nodes[0])
    first, second = nodes.T - 1
    if replace:
        counts = np.bincount(nodes.ravel() - 1, minlength=degree)
    else:
        assert (first != second).all()
        counts = np.bincount(first, minlength=degree)
        pairs = np.bincount(np.concatenate([first, second]), minlength=degree)
        p = odds / odds.sum()
        twice = p + np.array(
            [sum(p[j] * p[i] / (1 - p[j]) for j in range(degree) if j != i) for i in range(degree)]
        )
        assert uniform(pairs[odds > 0], twice[odds > 0]) > LEAST
    assert (counts[odds == 0] == 0).all()
    assert uniform(counts[odds > 0], odds[odds > 0]) > LEAST


@pytest.mark.parametrize("scale", [1e-60, 1e60, 1e-300, 1e300])
def test_weights_that_float32_does_not_hold_are_odds(scale):
    odds = np.array([1.0, 2.0, 4.0])
    with jax.enable_x64(True):
        A = jsp.from_edges([0, 0, 0], [1, 2, 3], odds * scale, shape=(4, 4))
        at = np.zeros(4000, int)
        found = jsp.learning.sample_neighbors(KEY, A, at, 1, weights=A.data).nodes[0]
        assert uniform(np.bincount(found.ravel(), minlength=4)[1:], odds) > LEAST
        everyone = jsp.learning.sample_neighbors(KEY, A, [0], 3, weights=[scale, 1.0, 1 / scale])
        assert sorted(everyone.nodes[0].ravel().tolist()) == [1, 2, 3]
    with jax.enable_x64(False), pytest.raises(ValueError, match="do not fit float32"):
        jsp.learning.sample_neighbors(KEY, star(2), [0], 1, weights=np.full(9, 1e39))


def test_hops_sizes_and_what_is_missing():
    A = star(3)
    found = jsp.learning.sample_neighbors(KEY, A, np.array([[0, 1], [5, 7]]), [4, 2])
    assert [x.shape for x in found.nodes] == [(2, 2, 4), (2, 2, 4, 2)]
    assert found.nodes[0].tolist() == [[[1, 2, 3, 7], [0, 7, 7, 7]], [[7] * 4, [7] * 4]]
    assert (np.asarray(found.nodes[1])[0, 0, :, 0] == [0, 0, 0, 7]).all()
    row, col = map(np.asarray, A.rowcol())
    for nodes, slots in zip(found.nodes, found.slots, strict=True):
        np.testing.assert_array_equal(np.append(col, 7)[np.minimum(slots, A.nse)], nodes)
    weighted = jsp.learning.sample_neighbors(KEY, A, [0, 1], 4, weights=A.data)
    assert sorted(weighted.nodes[0][0].tolist()) == [1, 2, 3, 7]


@pytest.mark.parametrize("name", ["csr", "csc", "ell", "sell", "tiled", "bittiled"])
def test_slots_are_those_of_the_matrix(name):
    rng = np.random.default_rng(0)
    S = scipy.sparse.random_array((70, 70), density=0.1, rng=rng, dtype=np.float32)
    A = jsp.from_scipy(S).asformat(name)
    A = A.T if name != "bittiled" else A  # shares its arrays with A
    nodes = np.arange(70)
    for B in (A.T, A):
        row, col = map(np.asarray, B.rowcol())
        found = jsp.learning.sample_neighbors(KEY, B, nodes, 3)
        heads, slots = np.asarray(found.nodes[0]), np.asarray(found.slots[0])
        there = slots < B.nse
        assert there.any() and ((heads < 70) == there).all() and (slots[~there] == B.nse).all()
        assert (row[slots[there]] == np.nonzero(there)[0]).all()
        assert (col[slots[there]] == heads[there]).all()
        heavy = (row + col) % 3 == 0  # of the others none is drawn
        found = jsp.learning.sample_neighbors(KEY, B, nodes, 3, weights=np.float32(heavy))
        slots = np.asarray(found.slots[0])
        assert (slots < B.nse).any() and heavy[slots[slots < B.nse]].all()


def test_slots_of_nothing():
    A = jsp.from_edges([], [], shape=(3, 3), format="ell")
    found = jsp.learning.sample_neighbors(KEY, A, [0, 1], 2, weights=A.data)
    assert found.slots[0].tolist() == [[A.nse] * 2] * 2
    assert found.nodes[0].tolist() == [[3] * 2] * 2


EXPECTED = ([[23, 6, 7, 4]], [[16, 19, 26, 18]], [[1, 0, 18, 0, 8, 0, 14]])


@pytest.mark.fast
def test_equal_keys_give_equal_samples():
    """These numbers are the same on every platform."""
    A = star(30)
    plain = jsp.learning.sample_neighbors(KEY, A, [0], 4).nodes[0].tolist()
    weighted = (
        jsp.learning.sample_neighbors(KEY, A, [0], 4, weights=jnp.arange(A.nse)).nodes[0].tolist()
    )
    walk = jsp.learning.random_walk(KEY, A, [1], 6, p=0.5, q=2.0).tolist()
    assert (plain, weighted, walk) == EXPECTED
    again = jax.jit(lambda key, A: jsp.learning.sample_neighbors(key, A, [0], 4).nodes[0])(KEY, A)
    assert again.tolist() == plain
    keys = jax.random.split(KEY, 3)
    mapped = jax.vmap(lambda k: jsp.learning.sample_neighbors(k, A, [0, 1], (4, 2)).nodes[1])(keys)
    one = jsp.learning.sample_neighbors(keys[1], A, [0, 1], (4, 2)).nodes[1]
    assert mapped[1].tolist() == one.tolist()
    weigh = jax.vmap(
        lambda k: jsp.learning.sample_neighbors(k, A, [0], 4, weights=A.data).nodes[0]
    )(keys)
    assert (
        weigh[2].tolist()
        == jsp.learning.sample_neighbors(keys[2], A, [0], 4, weights=A.data).nodes[0].tolist()
    )


@pytest.mark.gpu
def test_equal_keys_give_equal_samples_on_a_gpu():
    test_equal_keys_give_equal_samples()


# ---- Walks ----

TRIANGLES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (0, 5)]


def undirected(edges, n):
    i, j = np.array(edges).T
    return jsp.from_edges(np.r_[i, j], np.r_[j, i], shape=(n, n), nse=2 * len(edges) + 3)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (0.25, 4), (4, 0.5), (4, 1e-6)])
def test_steps_have_the_odds_of_node2vec(p, q):
    A = undirected(TRIANGLES, 7)
    D = np.asarray(A.todense()) > 0
    many = 20_000
    walk = np.asarray(jsp.learning.random_walk(KEY, A, np.zeros(many, int), 2, p=p, q=q))
    assert uniform(np.bincount(walk[:, 1], minlength=7)[D[0]]) > LEAST
    for v in np.flatnonzero(D[0]):
        steps = walk[walk[:, 1] == v, 2]
        odds = np.where(np.arange(7) == 0, 1 / p, np.where(D[0], 1, 1 / q)) * D[v]
        counts = np.bincount(steps, minlength=7)
        assert (counts[odds == 0] == 0).all()
        if (odds > 0).sum() > 1:
            assert uniform(counts[odds > 0], odds[odds > 0]) > LEAST


def test_walks_follow_edges_and_end():
    A = jsp.from_edges([0, 1, 1, 3], [1, 2, 3, 3], shape=(4, 4))
    D = np.pad(np.asarray(A.todense()) > 0, (0, 1))
    D[[2, 4], 4] = True
    for p in (1, 3):
        walk = np.asarray(
            jax.jit(lambda k, p=p: jsp.learning.random_walk(k, A, jnp.zeros((5, 2), int), 8, p=p))(
                KEY
            )
        )
        assert walk.shape == (5, 2, 9)
        assert D[walk[..., :-1], walk[..., 1:]].all()
    mapped = jax.vmap(lambda s: jsp.learning.random_walk(KEY, A, s, 3, q=2.0))(jnp.arange(4))
    assert mapped.shape == (4, 4) and mapped[2].tolist() == [2, 4, 4, 4]
    assert jsp.learning.random_walk(KEY, A, [1], 0).tolist() == [[1]]


def test_bad_arguments():
    A = star(3)
    with pytest.raises(ValueError, match="`fanouts` must be at least 1; got -1"):
        jsp.learning.sample_neighbors(KEY, A, [0], [2, -1])
    with pytest.raises(TypeError, match="`fanouts` must be integers"):
        jsp.learning.sample_neighbors(KEY, A, [0], [2.5])
    with pytest.raises(ValueError, match=r"`nodes` must lie in \[0, 7\); got 8"):
        jsp.learning.sample_neighbors(KEY, A, [8], 1)
    with pytest.raises(TypeError, match="`nodes` must be integers"):
        jsp.learning.sample_neighbors(KEY, A, [0.5], 1)
    with pytest.raises(ValueError, match="`weights` must have shape"):
        jsp.learning.sample_neighbors(KEY, A, [0], 1, weights=jnp.ones(2))
    with pytest.raises(ValueError, match="`key` must be one key"):
        jsp.learning.sample_neighbors(3, A, [0], 1)
    with pytest.raises(ValueError, match="`p` must be a Python number above 0"):
        jsp.learning.random_walk(KEY, A, [0], 1, p=0)
    with pytest.raises(ValueError, match="`length` must lie in"):
        jsp.learning.random_walk(KEY, A, [0], -1)
