"""Tiled, BitTiled and their vectors against dense arrays: tile sizes, remainder, capacities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import jaxspv as jsp
from jaxspv.formats import BitTiled, Tiled
from jaxspv.formats.tiled.tiled import Capacity


def random_matrix(m, n, entries, seed=0, band=None):
    """Distinct places, in a band around the diagonal or anywhere; values 1, 2, 3, ..."""
    rng = np.random.default_rng(seed)
    row = rng.integers(0, m, entries)
    spread = rng.integers(-band, band + 1, entries) if band else rng.integers(0, n, entries)
    col = np.clip(row * n // m + spread, 0, n - 1) if band else spread
    pattern = sp.coo_array((np.ones(entries, np.float32), (row, col)), shape=(m, n)).tocsr()
    pattern.sum_duplicates()
    pattern.data = np.arange(1, pattern.nnz + 1, dtype=np.float32)
    return pattern


def places_of_tiles(matrix, nt):
    """dict (row of tiles, column of tiles) -> entries, by a loop over all entries."""
    coo, tiles = matrix.tocoo(), {}
    for i, j in zip(*coo.coords, strict=True):
        key = int(i) // nt, int(j) // nt
        tiles[key] = tiles.get(key, 0) + 1
    return tiles


@pytest.mark.parametrize(("nt", "limit"), [(16, 0), (16, 3), (32, 1), (64, 0)])
def test_tiles_are_the_non_empty_ones_in_order(nt, limit):
    matrix = random_matrix(150, 210, 900, band=20)
    A = Tiled.from_coo(jsp.from_scipy(matrix).to_coo(), nt=nt, sparse_tile=limit)
    tiles = places_of_tiles(matrix, nt)
    kept = sorted(key for key, entries in tiles.items() if entries > limit)
    down = np.repeat(np.arange(len(A.tile_ptr) - 1), np.diff(A.tile_ptr))
    assert list(zip(down.tolist(), A.tile_col.tolist(), strict=True)) == kept
    assert np.diff(A.slot_ptr).tolist() == [tiles[key] for key in kept]
    assert len(A.rest_row) == sum(e for e in tiles.values() if e <= limit)
    assert A.packed.nbytes == -(-A.local.size // (4 if nt == 16 else 2)) * 4
    np.testing.assert_array_equal(A.to_scipy().toarray(), matrix.toarray())
    np.testing.assert_array_equal(A.T.todense(), matrix.toarray().T)


def test_a_capacity_too_small_sets_overflow_and_a_large_one_does_not():
    coo = jsp.from_scipy(random_matrix(150, 210, 900)).to_coo()
    whole = Tiled.from_coo(coo, nt=16, sparse_tile=2)
    tiles, rest = whole.tile_col.size, whole.rest_row.size
    assert tiles > 3 and rest > 3

    def build(coo, extra_tiles, extra_rest):
        capacity = Capacity(tiles + extra_tiles, rest + extra_rest)
        return Tiled.from_coo(coo, nt=16, sparse_tile=2, capacity=capacity)

    run = jax.jit(build, static_argnums=(1, 2))
    for extra in ((0, 0), (5, 0), (-1, 0), (0, -1)):
        A = run(coo, *extra)
        if min(extra) < 0:
            assert bool(A.overflow)
        else:
            assert not bool(A.overflow)
            np.testing.assert_array_equal(A.todense(), coo.todense())


def test_the_tile_size_follows_the_matrix():
    block = jsp.from_scipy(sp.csr_array(np.kron(np.eye(8), np.ones((16, 16))).astype(np.float32)))
    assert block.asformat("tiled").nt == 16
    loose = jsp.from_scipy(random_matrix(640, 640, 4000)).asformat("tiled")
    assert loose.nt == 64  # 100 large tiles hold what takes 1600 small ones
    with pytest.raises(ValueError, match=r"`nt` must be one of \(16, 32, 64\); got 8"):
        Tiled.from_coo(block.to_coo(), nt=8)


def test_large_numbers_of_tiles_take_two_sorts():
    m, n = 2**14, 2**31 - 64  # 2^33 places for tiles of 64, few rows of them
    rng = np.random.default_rng(0)
    row, col = (np.sort(rng.integers(0, m, 50)), rng.integers(0, n, 50))
    A = jsp.from_edges(row, col, np.arange(50.0), shape=(m, n), format="coo")
    B = Tiled.from_coo(A, nt=64).to_coo()
    for name in ("row", "col", "data"):
        np.testing.assert_array_equal(getattr(A, name), getattr(B, name))


@pytest.mark.parametrize(("nt", "limit"), [(16, 2), (32, 0), (64, 2)])
def test_bit_tiles_keep_the_structure_both_ways(nt, limit):
    matrix = random_matrix(130, 130, 700, band=30)
    A = BitTiled.from_coo(jsp.from_scipy(matrix).to_coo(), nt=nt, sparse_tile=limit)
    dense = matrix.toarray() != 0
    assert not A.symmetric and int(A.count) == dense.sum() and A.nse == matrix.nnz
    np.testing.assert_array_equal(A.todense(), dense)
    np.testing.assert_array_equal(A.T.todense(), dense.T)
    tiles = places_of_tiles(matrix, nt)
    assert int(A.num_tiles) == sum(e > limit for e in tiles.values())
    for side, image in ((A.by_row, dense), (A.by_column, dense.T)):  # the words, bit by bit
        down = np.repeat(np.arange(len(side.tile_ptr) - 1), np.diff(side.tile_ptr))
        got = np.zeros((down.max() * nt + nt, 192), bool)
        words = np.asarray(side.words)
        for t, (i, j) in enumerate(zip(down, side.tile_minor.tolist(), strict=True)):
            for line, bit in np.ndindex(nt, nt):
                word = int(words[t, line, bit // 32])
                got[i * nt + line, j * nt + bit] = word >> (bit % 32) & 1
        rest = np.repeat(np.arange(130), np.diff(side.rest_ptr))
        got[rest, np.asarray(side.rest_minor)] = True
        np.testing.assert_array_equal(got[:130, :130], image)


def test_a_symmetric_matrix_has_one_copy():
    matrix = random_matrix(100, 100, 300)
    A = jsp.from_scipy(sp.csr_array(matrix + matrix.T))
    B = A.asformat("bittiled")
    assert B.symmetric and B.other is None and B.by_column is B.by_row
    assert repr(B) == f"BitTiled(shape=(100, 100), nse={A.nse}, nt=32)"
    traced = jax.jit(lambda A: A.asformat("bittiled"))(A)
    np.testing.assert_array_equal(traced.todense(), A.todense() != 0)


def test_the_order_decides_between_words_of_32_and_64():
    ends = jnp.zeros(2, jnp.int32)
    for n, nt in ((10_000, 32), (10_001, 64)):
        A = jsp.COO(ends, ends, ends, jnp.asarray(False), (n, n))
        assert jax.eval_shape(BitTiled.from_coo, A).nt == nt


def test_more_words_than_int32_numbers_are_refused():
    entries = jax.ShapeDtypeStruct((2**25,), jnp.int32)

    def convert(row, col):
        places = jsp.COO(row, row, col, jnp.asarray(False), (2**24, 2**24))
        return jsp.BitTiled.from_coo(places, symmetric=True).by_row.words

    with pytest.raises(ValueError, match="33554432 tiles of 64 by 64 bits take 2.31 words"):
        jax.eval_shape(convert, entries, entries)


def test_values_of_a_bit_matrix_make_a_coo():
    A = jsp.from_edges([0, 2], [1, 0], shape=(3, 3)).asformat("bittiled")
    B = A.with_data(jnp.array([5.0, 7.0]))
    assert B.todense().tolist() == [[0, 5, 0], [0, 0, 0], [7, 0, 0]]
    assert (A @ jnp.array([True, True, False])).tolist() == [True, False, True]
    leaves, tree = jax.tree.flatten(A)
    assert "BitTiled" in repr(jax.tree.unflatten(tree, [None] * len(leaves)))


VECTORS = st.lists(st.integers(0, 129), unique=True, max_size=12)


@pytest.mark.parametrize("nt", [16, 64])
def test_tiled_vectors(nt):
    build = jax.jit(lambda x: jsp.TiledVector.from_sparse(x, nt))

    @given(VECTORS)
    def check(places):
        pad = 12 - len(places)
        x = jsp.SparseVector(
            jnp.asarray([float(i % 3) for i in places] + [jnp.nan] * pad, jnp.float32),
            jnp.asarray(places + [130] * pad, jnp.int32),
            jnp.int32(len(places)),
            jnp.asarray(False),
            (130,),
            sorted=False,
        )
        t = build(x)
        tiles = sorted({i // nt for i in places})
        want = [tiles.index(k) if k in tiles else -1 for k in range(-(-130 // nt))]
        assert t.x_ptr.tolist() == want and int(t.count) == len(places) and not t.overflow
        np.testing.assert_array_equal(t.todense(7), x.todense(7))
        np.testing.assert_array_equal(t.structure(), x.structure())
        back = t.to_sparse()
        assert back.indices[: len(places)].tolist() == sorted(places)
        bits = jsp.BitVector.from_sparse(x)
        assert int(bits.count) == len(places)
        np.testing.assert_array_equal(bits.todense(), x.structure())
        assert bits.to_sparse().indices.tolist() == sorted(places)
        ids = jnp.asarray([*places, -1, 130])
        np.testing.assert_array_equal(jsp.BitVector.from_indices(ids, 130).words, bits.words)

    check()


def test_a_tiled_vector_without_room_says_so():
    x = jsp.vector_from_entries([1, 40, 80], np.float32([1, 2, 3]), 100)
    t = jsp.TiledVector.from_sparse(x, 16, tiles=2)
    assert bool(t.overflow) and t.to_sparse(4).indices.tolist() == [1, 40, 100, 100]
    assert repr(t) == "TiledVector(float32[32], shape=(100,), nt=16)"
