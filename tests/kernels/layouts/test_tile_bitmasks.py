"""The kernels that make tiles of bits, interpreted and native, against a loop in NumPy."""

import chex
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from graph_files import graph_files

import jaxspv as jsp
from jaxspv.formats.tiled import bit_tiled
from pallas_kernels.layouts import tile_bitmasks as tile_words
from pallas_kernels.layouts.tile_bitmasks import Tiling, count_tiles, fill_tiles
from tests.kernels.test_lowering import lower


def pattern(m, n, entries, seed=0, hub=None):
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, m, entries), rng.integers(0, n, entries)
    row, col = np.append(row, col[: entries // 4] % m), np.append(col, col[: entries // 4])
    if hub is not None:
        row, col = np.append(row, np.full(n, hub)), np.append(col, np.arange(n))
    A = sp.coo_array((np.ones(len(row), np.float32), (row, col)), shape=(m, n)).tocsr()
    A.sum_duplicates()
    return A


def expected(A, nt, limit):
    """tile_ptr, tile_minor, words as bits (t, nt, nt), rest as sorted pairs."""
    tiles = {}
    coo = A.tocoo()
    for i, j in zip(coo.row, coo.col, strict=True):
        tiles.setdefault((i // nt, j // nt), []).append((i, j))
    kept = sorted(t for t, entries in tiles.items() if len(entries) > limit)
    bits = np.zeros((len(kept), nt, nt), bool)
    for number, t in enumerate(kept):
        for i, j in tiles[t]:
            bits[number, i % nt, j % nt] = True
    rest = sorted(e for t, entries in tiles.items() if len(entries) <= limit for e in entries)
    ptr = np.searchsorted([t[0] for t in kept], np.arange(-(-A.shape[0] // nt) + 1))
    return ptr, [t[1] for t in kept], bits, rest


def run(A, nt, limit, interpret=True):
    fixed = {"tiling": Tiling(nt, A.shape[1], limit, interpret)}
    arrays = jnp.asarray(A.indptr, jnp.int32), jnp.asarray(A.indices, jnp.int32)
    tiles, moved = count_tiles(*arrays, **fixed)
    tile_ptr, rest_ptr = (jnp.append(0, jnp.cumsum(v)).astype(jnp.int32) for v in (tiles, moved))
    out = fill_tiles(
        *arrays, tile_ptr, rest_ptr, tiles=int(tile_ptr[-1]), rest=int(rest_ptr[-1]), **fixed
    )
    return tile_ptr, rest_ptr, *out


def check(A, nt, limit, got):
    tile_ptr, rest_ptr, tile_minor, words, rest_minor = map(np.asarray, got)
    want = expected(A, nt, limit)
    np.testing.assert_array_equal(tile_ptr, want[0])
    np.testing.assert_array_equal(tile_minor, want[1])
    each = min(nt, 32)
    bits = words.reshape(-1, 1) >> np.arange(each, dtype=np.uint32) & 1
    np.testing.assert_array_equal(bits.reshape(-1, nt, nt), want[2])
    row = np.repeat(np.arange(A.shape[0]), np.diff(rest_ptr))
    assert list(zip(row.tolist(), rest_minor.tolist(), strict=True)) == want[3]


CASES = [(90, 70, 300, None, 2), (40, 200, 100, 3, 0), (33, 129, 200, None, 5)]


@pytest.mark.parametrize("nt", [16, 32, 64])
@pytest.mark.parametrize("m,n,entries,hub,limit", CASES)
def test_against_the_definition(monkeypatch, nt, m, n, entries, hub, limit):
    monkeypatch.setattr(tile_words, "THREADS", (96,))
    A = pattern(m, n, entries, 1, hub)
    check(A, nt, limit, run(A, nt, limit))


@pytest.mark.parametrize("window", [1, 3])
def test_a_window_of_counters_moves_over_a_row_of_tiles(monkeypatch, window):
    monkeypatch.setattr(tile_words, "THREADS", (96,))
    monkeypatch.setattr(tile_words, "WINDOWS", (window, window))
    A = pattern(40, 200, 250, 2, 7)
    check(A, 16, 2, run(A, 16, 2))


def test_one_launch_each():
    A = pattern(300, 300, 2000)
    arrays = jnp.asarray(A.indptr, jnp.int32), jnp.asarray(A.indices, jnp.int32)
    fixed = {"tiling": Tiling(64, 300, 2)}
    text = lower(lambda *a: count_tiles(*a, **fixed), *arrays)
    assert text.count("custom_call @mosaic_gpu") == 1
    pointers = jnp.zeros(6, jnp.int32), jnp.zeros(301, jnp.int32)
    text = lower(lambda *a: fill_tiles(*a, tiles=9, rest=4, **fixed), *arrays, *pointers)
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.parametrize("symmetric", [True, False, None])
def test_a_bittiled_made_of_rows_equals_one_made_of_triplets(monkeypatch, symmetric):
    monkeypatch.setattr(tile_words, "THREADS", (96,))
    A, limit = pattern(90, 90, 300, 3), 40 if symmetric is False else 70
    A = jsp.from_scipy((A + A.T).tocsr() if symmetric is not False else A)
    made = bit_tiled._from_rows(bit_tiled.BitTiled, A, 32, limit, symmetric, interpret=True)
    want = bit_tiled.BitTiled.from_coo(A.to_coo(), nt=32, sparse_tile=limit, symmetric=symmetric)
    chex.assert_trees_all_equal(made, want, strict=True)
    assert made.symmetric == (symmetric is not False) and want.by_row.rest_ptr[-1] > 0


@pytest.mark.gpu
@pytest.mark.parametrize("nt", [16, 32, 64])
def test_native(nt):
    for seed, (m, n, entries, hub) in enumerate([(90, 70, 300, None), (5000, 7000, 60000, 17)]):
        A = pattern(m, n, entries, seed, hub)
        for limit in (0, 2):
            check(A, nt, limit, run(A, nt, limit, interpret=False))


FILES = [p for p in graph_files() if p.name.split(".")[0] in ("email-Enron", "wing", "cavity14")]


@pytest.mark.gpu
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name.split(".")[0])
def test_native_real_graphs(path):
    A = jsp.read_mtx(path)
    made = bit_tiled.BitTiled.from_csr(A)
    want = bit_tiled.BitTiled.from_coo(A.to_coo())
    chex.assert_trees_all_equal(made, want, strict=True)
