"""The benchmark of tiles: its matrices, its comparator, its records, tables and pictures."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from benchmarks import tile_suite
from benchmarks.__main__ import main
from benchmarks.products.bucket import bucket_spmspv
from benchmarks.report import plot_tiles, table_tiles
from benchmarks.traversal import tile_bfs


@pytest.mark.parametrize("workload", tile_suite.SMALL, ids=lambda w: w.name)
def test_matrices_are_symmetric_and_sorted(workload):
    A = workload.build().to_scipy()
    assert A.has_sorted_indices and (A != A.T).nnz == 0 and (A.data > 0).all()
    assert A.nnz == A.tocoo().tocsr().nnz  # no place twice


def test_a_stencil_is_its_definition():
    A = tile_suite.fem(3, 4, dof=2).to_scipy().toarray() != 0
    point = [divmod(k // 2, 4) for k in range(24)]
    near = [[abs(a - c) <= 1 and abs(b - d) <= 1 for c, d in point] for a, b in point]
    np.testing.assert_array_equal(A, near)
    band = tile_suite.banded(60, 10, 1, 3).to_scipy().toarray() != 0
    distance = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    np.testing.assert_array_equal(band, (distance <= 1) | (abs(distance - 10) <= 1))
    uneven = tile_suite.banded(60, 10, 3, 3).to_scipy()  # 10 / 3 is no integer
    assert (uneven != uneven.T).nnz == 0


def test_buckets_give_the_product():
    A = jsp.generators.rmat(jax.random.key(1), 8, 6).asformat("csc")
    x = jsp.vector_from_entries([3, 90, 200], [1.0, 2.0, -3.0], 256, nse=5)
    y = bucket_spmspv(A, x, edges=400, nse=256)
    want = jsp.mxv(A, x, method="sort")
    assert int(y.count) == int(want.count)
    np.testing.assert_allclose(y.todense(), want.todense(), rtol=1e-5)
    assert bool(bucket_spmspv(A, x, edges=400, nse=1).overflow)


def test_wrong_levels_are_seen():
    A = tile_suite.NAMES["fem-6-5-2"].build()
    levels = jsp.bfs(A, 0).levels
    check = tile_bfs._check_levels(A)
    check(levels)
    for wrong in (levels.at[7].add(1), levels.at[7].set(-1), jnp.where(levels > 0, levels + 1, 0)):
        with pytest.raises(AssertionError, match="these are no levels"):
            check(wrong)


@pytest.mark.slow
def test_records_tables_and_a_picture(tmp_path):
    out, picture, text = (tmp_path / name for name in ("o.json", "o.png", "o.md"))
    arguments = ["--graphs", "fem-6-5-2", "--runs", "1", "--json", str(out), "--plot", str(picture)]
    for name, kinds in (
        ("tiles", {"tiles: SpMSpV", "tiles: conversion"}),
        ("tilebfs", {"tiles: BFS"}),
    ):
        assert main([name, *arguments, "--markdown", str(text)]) == 0
        records = json.loads(out.read_text())["records"]
        assert {r["benchmark"] for r in records} == kinds
        assert all(r["verified"] for r in records) and picture.stat().st_size > 10_000
        assert ("Speed over cuSPARSE CSR" in text.read_text()) == (name == "tiles")


def test_the_summary_takes_geometric_means():
    times = {"auto": 1.0, "columns": 2.0, "cuSPARSE": 8.0}
    records = [
        {
            "program": p,
            "median_ms": ms * (k if p == "cuSPARSE" else 1),
            "density": 0.1,
            "graph": str(k),
            "entries": 30_000_000 if k < 5 else 5,
        }
        for k in (1, 4, 100)
        for p, ms in times.items()
    ]
    headers, rows = table_tiles.summary(records)
    large = dict(zip(headers, rows[0], strict=True))
    assert large["auto"] == pytest.approx(16) and large["columns"] == pytest.approx(8)
    assert large["auto: least share of the best"] == pytest.approx(2)
    assert plot_tiles.PANELS == 7
