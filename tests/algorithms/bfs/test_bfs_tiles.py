"""Searches over bitmask tiles: rows made of them on CPUs, on GPUs every way through a level."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxspv as jsp
from jaxspv import verify

WAYS = {
    "push_csc": jsp.TileRule(("push_csc",)),
    "push_csr": jsp.TileRule(("push_csc", "push_csr"), push_csr_above=0.0),
    "pull_csc": jsp.TileRule(push_csr_above=2.0, pull_below=1.0),
    "rule": jsp.TileRule(push_csr_above=0.1, pull_below=0.3),
}


def levels_by_hand(dense, source):
    """A queue in Python over a dense boolean matrix."""
    levels = np.full(len(dense), -1)
    levels[source], queue = 0, [source]
    for u in queue:
        for v in np.flatnonzero(dense[u]):
            if levels[v] < 0:
                levels[v] = levels[u] + 1
                queue.append(v)
    return levels


def directed(n, edges, seed):
    rng = np.random.default_rng(seed)
    dense = np.zeros((n, n), bool)
    dense[rng.integers(0, n, edges), rng.integers(0, n, edges)] = True
    return dense


def test_levels_are_the_definition():
    @functools.cache
    def program(nt, limit):
        def run(A, source):
            tiles = jsp.BitTiled.from_coo(A.to_coo(), nt=nt, sparse_tile=limit)
            return jsp.bfs(tiles, source, parents=False)

        return jax.jit(run)

    @settings(max_examples=15)
    @given(
        st.integers(0, 10**6),
        st.integers(1, 200),
        st.integers(0, 99),
        st.sampled_from([(32, 0), (64, 2)]),
    )
    def check(seed, edges, source, kind):
        dense = directed(100, edges, seed)
        A = jsp.from_edges(*np.nonzero(dense), shape=(100, 100), nse=200)
        found = program(*kind)(A, source)
        want = levels_by_hand(dense, source)
        np.testing.assert_array_equal(found.levels, want)
        assert found.num_levels == want.max() + 1 and found.parents is None

    check()


def test_a_directed_path_in_both_directions():
    n = 80
    search = jax.jit(lambda A, s: jsp.bfs(A, s, format="bittiled"))
    for step in (1, -1):
        A = jsp.from_scipy(sp.diags_array([np.ones(n - 1)], offsets=[step], shape=(n, n)).tocsr())
        tiles = A.asformat("bittiled")
        for source in (0, 40, n - 1):
            found = search(tiles, source)
            distance = (np.arange(n) - source) * step
            np.testing.assert_array_equal(found.levels, np.where(distance >= 0, distance, -1))
            verify.bfs(A, source, found)


def test_formats_give_the_same_tree_of_smallest_parents():
    dense = directed(90, 300, 3)
    A = jsp.from_edges(*np.nonzero(dense), shape=(90, 90))
    rows = jsp.bfs(A, 5, deterministic=True)
    verify.bfs(A, 5, rows)
    prepared = jsp.prepare(A, for_=("bfs", "bittiled"))
    for found in (
        jsp.bfs(A, 5, format="bittiled"),
        jsp.bfs(A.asformat("bittiled"), 5),
        jsp.bfs(prepared, 5, format="bittiled"),
        jsp.bfs(prepared, 5, deterministic=True),
    ):
        for a, b in zip(rows, found, strict=True):
            np.testing.assert_array_equal(a, b)
    many = jsp.bfs(prepared, jnp.array([5, 7]), format="bittiled")
    np.testing.assert_array_equal(many.levels[0], rows.levels)


def test_until_on_tiles():
    A = jsp.from_scipy(sp.diags_array([np.ones(59)], offsets=[1], shape=(60, 60)).tocsr())
    for until in (
        jsp.until.reached(7),
        jsp.until.max_iterations(7),
        jsp.until.reached(59) | jsp.until.reached(7),
    ):
        found = jsp.bfs(A, 0, until=until, format="bittiled")
        assert found.levels.max() == 7 and found.num_levels == 8


def test_the_choice_is_explained():
    block = sp.csr_array(np.kron(np.eye(4), np.ones((64, 64))).astype(np.float32))
    clustered = jsp.prepare(jsp.from_scipy(block), for_=("bfs", "bittiled"))
    assert "xla/rows" in str(jsp.explain("bfs", clustered))
    loose = jsp.prepare(jsp.from_edges([0, 50], [70, 3], shape=(99, 99)), for_=("bfs", "bittiled"))
    assert "tile" not in str(jsp.explain("bfs", loose))
    assert "tile" not in str(jsp.explain("bfs", jsp.from_scipy(block)))
    assert "pallas/tile" in str(jsp.explain("bfs", loose, format="bittiled"))
    assert "tile" not in str(jsp.explain("bfs", clustered, format="csr"))
    assert jsp.choose_format(jsp.from_scipy(block)).format == "bittiled"
    products = jsp.choose_format(jsp.from_scipy(block), "spmspv")
    assert products.format == "csc" and products.per_tile == 256 and products.tiles == 64
    with pytest.raises(ValueError, match="`format` must be one of .*; got 'ell'"):
        jsp.bfs(loose, 0, format="ell")
    with pytest.raises(ValueError, match="`for_` must be 'bfs', 'spmspv' or 'mxv'; got 'sssp'"):
        jsp.choose_format(jsp.from_scipy(block), "sssp")
    with pytest.raises(ValueError, match="with push_csc; got"):
        jsp.TileRule(("pull_csc",))
    with pytest.raises(ValueError, match=r"square matrix; got shape \(2, 3\)"):
        jsp.bfs(jsp.from_edges([0], [2], shape=(2, 3)).asformat("bittiled"), 0)


@pytest.mark.gpu
@pytest.mark.parametrize("way", WAYS)
def test_the_kernel_equals_the_rows_on_a_gpu(way):
    dense = directed(3000, 12_000, 5)
    A = jsp.from_edges(*np.nonzero(dense), shape=(3000, 3000))
    for nt, limit in ((32, 0), (64, 2)):
        tiles = jsp.BitTiled.from_coo(A.to_coo(), nt=nt, sparse_tile=limit)
        for source in (0, 17):
            found = jsp.bfs(tiles, source, rule=WAYS[way])
            verify.bfs(A, source, found)
    stopped = jsp.bfs(tiles, 17, rule=WAYS[way], until=jsp.until.max_iterations(3))
    whole = jsp.bfs(A, 17).levels
    np.testing.assert_array_equal(stopped.levels, np.where(whole <= 3, whole, -1))
