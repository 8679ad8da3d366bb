"""Files written and read again, files of other programs, and what broken ones raise."""

import dataclasses
import gzip
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from strategies import DTYPES, PROBLEMS, precision

import jaxspv as jsp
from jaxspv.formats import FORMATS
from jaxspv.io.tables import lines

GENERAL = """%%MatrixMarket matrix coordinate {field} {symmetry}
% a comment

3 3 4
"""
ENTRIES = {
    "general": [(0, 1, 2), (2, 0, -3), (1, 1, 4), (2, 2, 0)],
    "symmetric": [(1, 0, 2), (2, 0, -3), (1, 1, 4), (2, 2, 0)],
    "skew-symmetric": [(1, 0, 2), (2, 0, -3), (2, 1, 4), (2, 1, 1)],
}
SIGN = {"symmetric": 1, "skew-symmetric": -1}


def mtx(field, symmetry):
    rows = [
        f"{i + 1} {j + 1}" + ("" if field == "pattern" else f" {v}")
        for i, j, v in ENTRIES[symmetry]
    ]
    return GENERAL.format(field=field, symmetry=symmetry) + "\n".join(rows) + "\n"


def dense(field, symmetry):
    values, stored = np.zeros((3, 3)), np.zeros((3, 3), bool)
    for i, j, v in ENTRIES[symmetry]:
        v = 1 if field == "pattern" else v
        values[i, j] += v
        stored[i, j] = True
        if symmetry != "general" and i != j:
            values[j, i] += SIGN[symmetry] * v
            stored[j, i] = True
    return values, stored


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize("symmetry", ENTRIES)
@pytest.mark.parametrize("field", ["pattern", "integer", "real"])
def test_read_mtx(tmp_path, field, symmetry, suffix):
    if (field, symmetry) == ("pattern", "skew-symmetric"):
        pytest.skip("the format has no skew patterns")
    path = tmp_path / f"a{suffix}"
    text = mtx(field, symmetry).encode()
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    A = jsp.read_mtx(path)
    values, stored = dense(field, symmetry)
    assert isinstance(A, jsp.CSR)
    assert A.dtype == (np.int32 if field == "integer" else np.float32)
    assert A.sorted and A.unique and not bool(A.overflow)
    np.testing.assert_array_equal(A.todense(), values)
    np.testing.assert_array_equal(A.with_data(jnp.ones_like(A.data)).todense() != 0, stored)


@pytest.mark.parametrize("name", FORMATS)
def test_read_mtx_options(tmp_path, name):
    path = tmp_path / "a.mtx"
    path.write_text(mtx("integer", "general"))
    A = jsp.read_mtx(str(path), dtype=np.float32, nse=9, format=name, progress=True)
    assert type(A) is FORMATS[name] and A.dtype == np.float32
    assert A.nse == 9 or name in ("ell", "sell")  # slots follow from the rows
    assert int(A.count) == 4
    np.testing.assert_array_equal(A.todense(), dense("integer", "general")[0])
    with pytest.raises(ValueError, match="`nse` must be at least 4"):
        jsp.read_mtx(path, nse=3)


def test_a_search_of_a_small_file_imports_no_parts_of_scipy():
    """They take as long to import as all the rest of the command line's work."""
    code = (
        "import sys, jaxspv as jsp; A = jsp.read_mtx('minnesota'); G = jsp.prepare(A, for_='bfs');"
        "print(int(jsp.bfs(G, 0).num_levels) > 9, [m for m in sys.modules if m == 'scipy.sparse'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True []\n", done.stderr


def test_progress_is_shown_only_when_asked(tmp_path, capsys):
    path = tmp_path / "a.mtx"
    path.write_text(mtx("real", "general"))
    jsp.read_mtx(path)
    assert capsys.readouterr().err == ""
    jsp.read_mtx(path, progress=True)
    assert "a.mtx" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.mtx"])
def test_the_bar_moves_while_a_file_is_read(tmp_path, monkeypatch, name):
    """By all bytes, and not at once, whichever way they are read."""
    import tqdm

    moved = []

    class Bar(tqdm.tqdm):
        def update(self, n=1):
            moved.append(n)
            return super().update(n)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    monkeypatch.setattr(lines, "BLOCK", 1 << 19)
    path, text = tmp_path / name, "0 1\n" * 600_000
    if name == "a.mtx":
        text = "%%MatrixMarket matrix coordinate pattern general\n1 1 600000\n" + "1 1\n" * 600_000
    path.write_bytes(gzip.compress(text.encode(), 0) if name.endswith("gz") else text.encode())
    (jsp.read_mtx if name == "a.mtx" else jsp.read_edgelist)(path, progress=True)
    assert sum(moved) == path.stat().st_size and max(moved) <= path.stat().st_size / 2


def test_dense_files_and_large_integers(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n2 2\n0\n1.5\n2\n0\n")
    np.testing.assert_array_equal(jsp.read_mtx(path).todense(), [[0, 2], [1.5, 0]])
    path.write_text(
        "%%MatrixMarket matrix coordinate integer general\n1 2 2\n1 1 5\n1 2 9000000000\n"
    )
    with pytest.raises(ValueError, match=r"a\.mtx.*enable jax_enable_x64"):
        jsp.read_mtx(path)
    with jax.enable_x64():
        A = jsp.read_mtx(path)
        assert A.dtype == np.int64 and A.todense().tolist() == [[5, 9000000000]]


BROKEN = {
    "nothing": b"",
    "no banner": b"3 3 1\n1 1 1\n",
    "garbage": bytes(range(256)) * 3,
    "unknown field": mtx("real", "general").replace("real", "quaternion").encode(),
    "half a complex": b"%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 2\n",
    "no sizes": b"%%MatrixMarket matrix coordinate real general\n",
    "sizes are words": mtx("real", "general").replace("3 3 4", "a b c").encode(),
    "too few entries": mtx("real", "general").replace("3 3 4", "3 3 9").encode(),
    "index zero": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 2\n",
    "index past the end": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 2\n",
    "a value is a word": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n",
    "symmetric rectangle": b"%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 2\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_mtx(tmp_path, name):
    path = tmp_path / "broken.mtx"
    path.write_bytes(BROKEN[name])
    with pytest.raises(ValueError, match=r"broken\.mtx is no readable Matrix Market file: \S+"):
        jsp.read_mtx(path)


def test_broken_archives_and_missing_files(tmp_path):
    path = tmp_path / "broken.mtx.gz"
    whole = gzip.compress(mtx("real", "general").encode() * 50)
    for text in (b"no gzip", whole[: len(whole) // 2]):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"broken\.mtx\.gz"):
            jsp.read_mtx(path)
    path = tmp_path / "broken.npz"
    for text in (b"no zip", b""):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"broken\.npz"):
            jsp.load_npz(path)
    np.savez(path, a=np.ones(3))
    with pytest.raises(ValueError, match=r"broken\.npz.*written neither by"):
        jsp.load_npz(path)
    for read in (jsp.read_mtx, jsp.load_npz):
        with pytest.raises(FileNotFoundError, match="absent"):
            read(tmp_path / "absent.mtx")
    with pytest.raises(ValueError, match="`name` must be one of .*karate"):
        jsp.bundled("absent")


HEADERS = {
    "a list": lambda h: [h],
    "a number": lambda h: 3,
    "an unknown field": lambda h: h | {"static": h["static"] | {"x": 1}},
    "no fields": lambda h: {k: v for k, v in h.items() if k != "static"},
    "no data": lambda h: h | {"leaves": {k: v for k, v in h["leaves"].items() if k != "data"}},
    "data of None": lambda h: h | {"leaves": h["leaves"] | {"data": None}},
    "offsets of None": lambda h: h | {"leaves": h["leaves"] | {"indptr": None}},
    "a shape of text": lambda h: h | {"static": h["static"] | {"shape": "ab"}},
    "an unknown dtype": lambda h: h | {"leaves": h["leaves"] | {"data": "text"}},
    "a list for a format": lambda h: h | {"format": []},
    "a number for a child": lambda h: h | {"children": {"x": 3}},
}


@pytest.mark.parametrize("wrong", HEADERS)
def test_an_archive_with_a_wrong_header_is_named(tmp_path, wrong):
    path = tmp_path / "broken.npz"
    jsp.save_npz(path, jsp.from_dense([[1.0]]))
    with np.load(path) as archive:
        arrays = dict(archive)
    header = np.array(json.dumps(HEADERS[wrong](json.loads(str(arrays["jaxspv"])))))
    np.savez(path, allow_pickle=False, **(arrays | {"jaxspv": header}))
    with pytest.raises(ValueError, match=r"broken\.npz is no readable archive .*: \S+"):
        jsp.load_npz(path)


def test_an_archive_that_is_none_or_holds_a_vector(tmp_path):
    path = tmp_path / "broken.npz"
    with path.open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(ValueError, match=r"broken\.npz is no readable archive"):
        jsp.load_npz(path)
    jsp.save_npz(path, jsp.vector_from_entries([1], [1.0], 3))
    with pytest.raises(ValueError, match=r"broken\.npz holds a vector, no matrix.*'csr'"):
        jsp.load_npz(path, format="csr")


@pytest.mark.parametrize("dtype", [bool, np.int32, np.uint32, np.float32, np.float16, np.float64])
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_write_mtx(tmp_path, dtype, suffix):
    path = tmp_path / f"a{suffix}"
    with precision(dtype):
        values = np.array([1, 0, 1 / 3, 1e-7]).astype(dtype)  # an explicit zero among them
        A = jsp.from_edges([0, 2, 1, 1], [1, 0, 3, 0], values, shape=(3, 4), format="csc", nse=7)
        jsp.write_mtx(path, A, comment="of a test")
        B = jsp.read_mtx(path, dtype=dtype)
        assert int(B.count) == 4
        np.testing.assert_array_equal(B.todense(), A.todense())
        theirs = scipy.io.mmread(path, spmatrix=False)  # other programs read it
        np.testing.assert_array_equal(theirs.toarray().astype(dtype), A.todense())


SYMMETRIES = {
    "general": [
        ([(0, 1)], [0]),
        ([(0, 1), (1, 0), (2, 0)], [2, 2, 0]),
        ([(0, 1), (1, 0), (2, 2)], [2, -2, 0]),
        ([(0, 1), (1, 0)], [1, 2]),
    ],
    "symmetric": [([(0, 1), (1, 0), (2, 2)], [2, 2, 0]), ([(0, 1), (1, 0)], [0, 0])],
    "skew-symmetric": [([(0, 1), (1, 0)], [2, -2])],
}


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_symmetry_is_found_and_keeps_zeros(tmp_path, symmetry):
    path = tmp_path / "a.mtx"
    for places, values in SYMMETRIES[symmetry]:
        row, col = np.array(places, np.int32).T
        values = np.array(values, np.int32)
        A = jsp.from_edges(row, col, values, shape=(3, 3), nse=len(row), format="coo")
        jsp.write_mtx(path, A)
        B = jsp.read_mtx(path, format="coo")
        assert path.read_text().split()[4] == symmetry
        same(B, A)


def test_write_mtx_refuses(tmp_path):
    A = jsp.from_dense([[1.0]])
    least = scipy.sparse.coo_array(
        np.array([[0, -128], [-128, 0]], np.int8)
    )  # -(-128) wraps to -128
    with pytest.raises(ValueError, match="symmetry"):
        jsp.write_mtx(tmp_path / "a.mtx", least, symmetry="skew-symmetric")
    with pytest.raises(ValueError, match=r"`path` must end in \.mtx"):
        jsp.write_mtx(tmp_path / "a.txt", A)
    with pytest.raises(ValueError, match="concrete"):
        jax.jit(lambda A: jsp.write_mtx(tmp_path / "a.mtx", A))(A)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_npz_keeps_everything(tmp_path, name, problem):
    p = PROBLEMS[problem]
    A = jsp.from_edges(p.row, p.col, p.data, shape=p.shape, nse=len(p.row) + p.spare, format=name)
    padded = A.data.at[int(A.count) :].set(jnp.nan)  # padding may hold anything
    A = dataclasses.replace(A, data=padded)
    path = tmp_path / "a.npz"
    jsp.save_npz(path, A)
    same(jsp.load_npz(path), A)
    B = jsp.load_npz(path, format="coo")
    assert type(B) is jsp.COO
    np.testing.assert_array_equal(B.todense(), A.todense())


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_npz_keeps_dtypes(tmp_path, dtype):
    with precision(dtype):
        A = jsp.from_edges([0, 1, 1], [2, 0, 1], np.array([1, 0, 3]).astype(dtype), shape=(2, 3))
        jsp.save_npz(tmp_path / "a.npz", A, compressed=False)
        same(jsp.load_npz(tmp_path / "a.npz"), A)


@pytest.mark.parametrize("edges", [([0, 1, 69], [1, 0, 2]), ([0, 1], [1, 0])])
def test_npz_of_bits(tmp_path, edges):
    row, col = (np.r_[x, np.arange(40)] for x in edges)  # a tile, and a remainder or none
    A = jsp.from_edges(row, col, shape=(70, 70)).asformat("bittiled")
    assert A.symmetric == (len(edges[0]) == 2)
    path = tmp_path / "a.npz"
    jsp.save_npz(path, A)
    same(jsp.load_npz(path), A)
    np.testing.assert_array_equal(jsp.load_npz(path, format="csr").todense(), A.todense())


def test_npz_of_vectors_and_of_scipy(tmp_path):
    path = tmp_path / "a.npz"
    x = jsp.vector_from_entries([3, 1, 3], [1.0, 2.0, 4.0], 5, nse=6)
    jsp.save_npz(path, x)
    same(jsp.load_npz(path), x)
    theirs = scipy.sparse.random_array((5, 7), density=0.4, rng=0, dtype=np.float32)
    scipy.sparse.save_npz(path, theirs.tocsc())
    np.testing.assert_array_equal(jsp.load_npz(path).todense(), theirs.toarray())


def test_npz_refuses(tmp_path):
    A = jsp.from_dense([[1.0]])
    with pytest.raises(ValueError, match=r"`path` must end in \.npz"):
        jsp.save_npz(tmp_path / "a.mtx", A)
    with pytest.raises(TypeError, match="must be a sparse matrix or vector; got ndarray"):
        jsp.save_npz(tmp_path / "a.npz", np.ones(3))
    with pytest.raises(ValueError, match="traced"):
        jax.jit(lambda A: jsp.save_npz(tmp_path / "a.npz", A))(A)
    jsp.save_npz(tmp_path / "a.npz", A)
    with pytest.raises(ValueError, match="must be one of"):
        jsp.load_npz(tmp_path / "a.npz", format="dense")


def same(A, B):
    """Equal types, static fields, dtypes and bits, padding included."""
    assert jax.tree.structure(A) == jax.tree.structure(B)
    for a, b in zip(jax.tree.leaves(A), jax.tree.leaves(B), strict=True):
        assert a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize(
    "text",
    [
        "coordinate real general\n3 3 2\n1 2 1.5\n2 3 1e400.x",  # the line has no end
        "coordinate real general\n3 3 2\n1 2 1.5\n2 3 3.25\0\n",
        "array integer general\n0 2\n1\n0\n",  # values of no row
    ],
)
def test_what_ends_scipys_reader_is_an_error_or_read(tmp_path, text):
    (tmp_path / "a.mtx").write_text(f"%%MatrixMarket matrix {text}")
    try:
        assert jsp.read_mtx(tmp_path / "a.mtx").shape == (3, 3) and "\0" not in text
    except ValueError as error:
        assert "a.mtx is no readable Matrix Market file" in str(error)


def test_an_array_without_rows_is_read(tmp_path):
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix array real general\n0 2\n")
    A = jsp.read_mtx(tmp_path / "a.mtx")
    assert A.shape == (0, 2) and int(A.count) == 0
