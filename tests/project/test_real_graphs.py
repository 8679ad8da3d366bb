"""Every real graph: read, searched, and searched again by the command line, against SciPy."""

import gzip
import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from graph_files import graph_files

import jaxspv as jsp
from jaxspv import verify
from jaxspv.cli._jaxspv_command import main

FILES = graph_files() or [pytest.param(None, marks=pytest.mark.skip("no real graphs here"))]
BUNDLED = ("karate", "jazz", "minnesota", "delaunay_n13")


def header(path):
    """Field, symmetry, and sizes as the file's own lines have them."""
    opened = gzip.open(path, "rt") if path.name.endswith(".gz") else path.open()
    with opened as lines:
        banner = next(lines).lower().split()
        sizes = next(line for line in lines if not line.startswith("%"))
    return banner[3], banner[4], [int(word) for word in sizes.split()]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p and p.name.split(".")[0])
def test_bfs_of_a_file(path, capsys):
    field, symmetry, (rows, cols, entries) = header(path)
    A = jsp.read_mtx(path)
    assert A.shape == (rows, cols)
    assert A.dtype == (np.int32 if field == "integer" else np.float32)
    want = scipy.sparse.csr_array(scipy.io.mmread(path, spmatrix=False))
    assert int(A.count) == want.nnz
    assert want.nnz == entries if symmetry == "general" else entries <= want.nnz <= 2 * entries
    got = A.to_scipy()
    np.testing.assert_array_equal(got.indptr, want.indptr)
    np.testing.assert_array_equal(got.indices, want.sorted_indices().indices)
    np.testing.assert_array_equal(got.data, want.sorted_indices().data.astype(got.dtype))

    G = jsp.prepare(A)
    result = jsp.bfs(G, 0)
    verify.bfs(want, 0, result)

    assert main(["bfs", str(path), "--source", "0", "--repeat", "1", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    levels = verify.levels_of(want, 0)
    assert report["vertices"] == rows
    assert report["entries"] == want.nnz
    assert report["reached"] == (levels >= 0).sum()
    assert report["levels"] == levels.max() + 1
    assert report["symmetric"] == ((want != want.T).nnz == 0)
    reached = levels[np.repeat(np.arange(rows), np.diff(want.indptr))] >= 0
    row, col = want.tocoo().coords
    once = reached & (row <= col) if report["symmetric"] else reached
    assert report["traversed_edges"] == once.sum()
    assert report["gteps"] == pytest.approx(report["traversed_edges"] / report["time_ms"] / 1e6)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_graphs_are_those_of_the_folder(name, data):
    ours = jsp.bundled(name)
    theirs = next(p for p in data.iterdir() if p.name == ours.name)
    assert ours.read_bytes() == theirs.read_bytes()
