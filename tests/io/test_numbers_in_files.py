"""How numbers are written in files: read for what they are, or refused with their line."""

import functools

import jax
import numpy as np
import pytest
import scipy.io

import jaxspv as jsp

pytestmark = pytest.mark.fast
BANNER = "%%MatrixMarket matrix {} {} general\n"
READ = [
    "1.5D+02",
    "1.5d-2",
    "-2E3",
    "+2e+1",
    "7e0",
    ".5",
    "5.",
    "-0",
    "007",
    "inf",
    "-Infinity",
    "NaN",
]
REFUSED = {
    "real": ["0x10", "1_0", "1,5", "1e", "1e+", "1.5.2", "1-5", "1+5", "1e5e3", "infx", "nan(5)"]
    + ["1.5 7", "5 % c", "", "x", "--5", "e5", "."],
    "integer": ["1.5", "1e3", "0x10", "1_0", "3 7", "2-1", "2,1", ""],
    "pattern": ["7", "x"],
    "complex": ["1", "1 2 3", "1 0x2", "1 1_0", "1,2"],
}


def file_of(path, field, entries, sizes="2 2"):
    """A file of coordinates, the last line without an end."""
    text = f"{BANNER.format('coordinate', field)}% c\n{sizes} {len(entries)}\n"
    path.write_text(text + "\n".join(entries))
    return path


@pytest.mark.parametrize("text", READ)
def test_numbers_are_what_python_reads(tmp_path, text):
    want = float(text.lower().replace("d", "e"))
    A = jsp.read_mtx(file_of(tmp_path / "a.mtx", "real", ["1 2\t3", f" 2 1 {text} "]))
    np.testing.assert_array_equal(A.data, np.float32([3, want]))
    (tmp_path / "b.mtx").write_text(BANNER.format("array", "real") + f"2 1\n{text}\n\n3\n")
    B = jsp.read_mtx(tmp_path / "b.mtx")
    np.testing.assert_array_equal(B.todense()[:, 0], np.float32([want, 3]))


@pytest.mark.parametrize(("field", "text"), [(f, t) for f, ts in REFUSED.items() for t in ts])
def test_what_is_no_number_is_refused_with_its_line(tmp_path, field, text):
    good = {"real": "1 2 3", "integer": "1 2 3", "pattern": "1 2", "complex": "1 2 3 4"}[field]
    path = file_of(tmp_path / "a.mtx", field, [good, f"2 1 {text}", good])
    with pytest.raises(ValueError, match=r"a\.mtx.* line 5 must be `row column") as error:
        jsp.read_mtx(path)
    assert repr(f"2 1 {text}") in str(error.value)


def test_what_no_entry_can_be_is_refused_with_its_line(tmp_path):
    for field, line, message in (
        ("real", "3 1 5", "line 4 is out of a matrix of 2 rows and 2 columns; it is '3 1 5'"),
        ("pattern", "1 0", "line 4 is out of a matrix"),
        ("real", "1 1 1e999", "line 4 has a value beyond float64"),
        ("integer", "1 1 9223372036854775808", "line 4 must be `row column integer of 64 bits`"),
    ):
        good = {"real": "1 1 inf", "integer": "1 1 -9223372036854775808", "pattern": "2 2"}[field]
        with pytest.raises(ValueError, match=message):
            jsp.read_mtx(file_of(tmp_path / "a.mtx", field, [line, good, line]))


def test_an_opposite_that_no_integer_is_wraps_nowhere(tmp_path):
    mesh = jax.make_mesh((1,), ("d",))
    for field, value, message in (
        ("integer", -(2**63), "opposite to one of its values needs more"),
        ("unsigned-integer", 3, "unsigned integers above 0 have no opposite"),
    ):
        path = file_of(tmp_path / "a.mtx", field, [f"2 1 {value}"])
        path.write_text(path.read_text().replace("general", "skew-symmetric"))
        for read in (jsp.read_mtx, functools.partial(jsp.sharding.shard_file, mesh=mesh)):
            with pytest.raises(ValueError, match=message):
                read(path)


def test_a_sum_that_no_integer_of_64_bits_is_wraps_nowhere(tmp_path):
    for field, value in (("integer", 2**63 - 1), ("unsigned-integer", 2**64 - 1)):
        path = file_of(tmp_path / "a.mtx", field, [f"1 1 {value}", "1 1 3"])
        with pytest.raises(ValueError, match="a sum of its entries at one place needs more"):
            jsp.read_mtx(path)


def test_sums_in_a_narrow_dtype_wrap_nowhere(tmp_path):
    path = file_of(tmp_path / "a.mtx", "integer", ["1 2 100", "1 2 100"])
    real = file_of(tmp_path / "b.mtx", "real", ["1 2 100", "1 2 100"])
    (tmp_path / "a.txt").write_text("0 1 100\n0 1 100\n")
    table = {"source": [0, 1], "target": [1, 0], "km": [100, 100]}
    for read in (
        functools.partial(jsp.read_mtx, path),
        functools.partial(jsp.read_mtx, real),
        functools.partial(jsp.read_edgelist, tmp_path / "a.txt", weight=2),
        functools.partial(jsp.io.from_table, table, weight="km", labels=False, directed=False),
    ):
        with pytest.raises(ValueError, match="holds 200.*, which int8 does not"):
            read(dtype="int8")
        assert read(dtype="int16").todense()[0].tolist() == [0, 200]
    mesh, held = jax.make_mesh((1,), ("d",)), {"uint8": 200, "int16": 200, "float32": 200}
    for file in (path, real, tmp_path / "a.txt"):
        read = functools.partial(jsp.sharding.shard_file, file, mesh=mesh, weight=2)
        with pytest.raises(ValueError, match="a sum of values at one place is beyond int8"):
            read(dtype="int8")
        assert read(dtype="int8", dup=jsp.monoids.max).unshard().data[0] == 100
        assert {dtype: read(dtype=dtype).unshard().data[0] for dtype in held} == held
    path.write_text(path.read_text().replace("100", str(2**31 - 1)))
    with pytest.raises(ValueError, match="beyond int32"):
        jsp.sharding.shard_file(path, mesh=mesh)
    path.write_text(path.read_text().replace(str(2**31 - 1), "100"))
    most = jsp.read_mtx(path, dtype="int8", dup=jsp.monoids.max)
    assert most.todense()[0].tolist() == [0, 100]


WRONG = ["1.5 2 3", "1 1.5 3", "1 2-1 3", "1 +2- 3", "1,2,3", "1 2", "1 1 1\f2 2 2"]


@pytest.mark.parametrize("line", WRONG)
def test_indices_are_plain_integers(tmp_path, line):
    with pytest.raises(ValueError, match="line 4 must be `row column number`"):
        jsp.read_mtx(file_of(tmp_path / "a.mtx", "real", [line, "1 1 1"]))


def test_arrays_have_a_value_a_line(tmp_path):
    for text in ("1 2\n3\n", "1_0\n3\n", "0x1\n3\n"):
        (tmp_path / "a.mtx").write_text(f"{BANNER.format('array', 'real')}2 1\n{text}")
        with pytest.raises(ValueError, match="line 3 must be `number`"):
            jsp.read_mtx(tmp_path / "a.mtx")


def test_a_wrong_line_far_down_is_found(tmp_path):
    """Beyond what the parser reads at once."""
    entries = ["1 1 1.25"] * 300_000
    entries[-7] = "1 1 1.25x"
    with pytest.raises(ValueError, match=f"line {300_000 - 3} must be"):
        jsp.read_mtx(file_of(tmp_path / "a.mtx", "real", entries))


VALUES = ["300", "-1", "1", "1.5", "70000", "3e9", "1e39", "nan", "inf"]
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32"]


@pytest.mark.parametrize("text", VALUES)
def test_a_dtype_that_does_not_hold_a_value_is_refused(tmp_path, text):
    path = file_of(tmp_path / "a.mtx", "real", ["1 1 1", f"2 2 {text}"])
    (tmp_path / "a.txt").write_text(f"0 0 1\n1 1 {text}\n")
    for dtype in DTYPES:
        value = np.array(float(text))
        with np.errstate(all="ignore"):
            made = value.astype(dtype)
        held = (
            made == value
            if made.dtype.kind in "iub"
            else not (np.isfinite(value) > np.isfinite(made))
        )
        for read in (
            lambda d=dtype: jsp.read_mtx(path, dtype=d),
            lambda d=dtype: jsp.read_edgelist(tmp_path / "a.txt", weight=2, dtype=d),
        ):
            if held:
                A = read()
                assert A.dtype == dtype
                np.testing.assert_array_equal(np.asarray(A.data)[1], made)
            else:
                with pytest.raises(ValueError, match=f"holds .*, which {dtype} does not"):
                    read()


def test_a_value_beyond_all_floats_is_refused(tmp_path):
    with pytest.raises(ValueError, match="beyond float64; infinity is written `inf`"):
        jsp.read_mtx(file_of(tmp_path / "a.mtx", "real", ["1 1 1e400"]))
    for pair in ("1e39 nan", "nan 1e39", "1e39 inf"):
        with pytest.raises(ValueError, match="which complex64 does not"):
            jsp.read_mtx(file_of(tmp_path / "a.mtx", "complex", [f"1 1 {pair}"]), dtype="complex64")


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_complex_values_there_and_back(tmp_path, symmetry):
    values = np.complex64([1 + 2j, 0.1 - 1e-30j, complex(np.inf, -0.0), 0])
    values[1] = values[0] if symmetry == "symmetric" else values[1]
    A = jsp.from_edges([0, 1, 2, 0], [1, 0, 2, 0], values, shape=(3, 3), nse=4)
    jsp.write_mtx(tmp_path / "a.mtx", A)
    assert (tmp_path / "a.mtx").read_text().split()[3:5] == ["complex", symmetry]
    B = jsp.read_mtx(tmp_path / "a.mtx")
    assert B.dtype == np.complex64
    np.testing.assert_array_equal(B.data, A.data)
    with pytest.raises(ValueError, match="holds .*, which float32 does not"):
        jsp.read_mtx(tmp_path / "a.mtx", dtype="float32")


def test_complex_files_of_other_programs(tmp_path):
    theirs = np.array([[2, 1 - 1j], [1 + 1j, 3]], np.complex64)
    for symmetry in ("hermitian", "general"):
        scipy.io.mmwrite(tmp_path / "a.mtx", theirs, symmetry=symmetry)
        np.testing.assert_array_equal(jsp.read_mtx(tmp_path / "a.mtx").todense(), theirs)


def test_a_symmetry_that_the_matrix_lacks_is_refused(tmp_path):
    path = tmp_path / "a.mtx"
    zeros = jsp.from_edges([0, 1], [1, 0], [0.0, 0.0], shape=(2, 2))
    for symmetry in ("general", "symmetric", "skew-symmetric"):
        jsp.write_mtx(path, zeros, symmetry=symmetry)
        assert int(jsp.read_mtx(path).count) == 2
    one = jsp.from_edges([0], [1], shape=(2, 2))
    for symmetry in ("symmetric", "skew-symmetric", "hermitian", "none"):
        with pytest.raises(ValueError, match=f"`symmetry` .*'general'.*; got '{symmetry}'"):
            jsp.write_mtx(path, one, symmetry=symmetry)


def test_wide_integers_to_the_last_bit(tmp_path):
    """Beyond 2^53, where floats of 64 bits leave some out."""
    values = {"int64": [2**63 - 1, -(2**63), 2**53 + 1], "uint64": [2**64 - 1, 0, 2**53 + 1]}
    with jax.enable_x64():
        for dtype, wide in values.items():
            A = jsp.from_edges([0, 1, 2], [1, 2, 0], np.array(wide, dtype))
            jsp.write_edgelist(tmp_path / "a.csv", A, jsp.Labels("abc"))
            B, _ = jsp.read_edgelist(tmp_path / "a.csv", weight=2, labels=True, dtype=dtype)
            jsp.write_edgelist(tmp_path / "a.csv", A)
            jsp.write_mtx(tmp_path / "a.mtx", A)
            C = jsp.read_edgelist(tmp_path / "a.csv", weight="weight", dtype=dtype)
            for back in (B, C, jsp.read_mtx(tmp_path / "a.mtx", dtype=dtype)):
                assert back.dtype == dtype and back.data.tolist() == A.data.tolist()
        (tmp_path / "a.csv").write_text("0,1,1.5\n")
        with pytest.raises(ValueError, match="line 1: `weight` must be an integer; got '1.5'"):
            jsp.read_edgelist(tmp_path / "a.csv", weight=2, dtype="int64")


WEIGHTS = ["1_0", "0x10", "1.5D+02", "\u0661", "1e", "--1", "", "x"]


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("text", WEIGHTS)
def test_weights_of_lists_of_edges_are_numbers(tmp_path, text, labels):
    """The same are refused of vertices and of names."""
    (tmp_path / "a.csv").write_text(f"0,1,1\n1,0,{text}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: `weight` must be a number; got"):
        jsp.read_edgelist(tmp_path / "a.csv", weight=2, labels=labels)
    (tmp_path / "a.csv").write_text("0,1\n1,\u0661\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2: `target` must be an integer; got '\u0661'"):
        jsp.read_edgelist(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "values, found",
    [
        ([0.0, -0.0, 1.0, 1.0], "general"),
        ([0.0, 0.0, 1.0, -1.0], "general"),
        ([0.0, -0.0, 1.0, -1.0], "skew-symmetric"),
        ([-0.0, -0.0, np.inf, np.inf], "symmetric"),
        ([np.nan, np.nan, 1.0, 1.0], "symmetric"),
        ([np.nan, 1.0, 1.0, 1.0], "general"),
        ([complex(np.nan, 1), complex(np.nan, 1), 1j, 1j], "symmetric"),
    ],
)
def test_the_found_symmetry_keeps_signs_of_zeros(tmp_path, values, found):
    ends, path = ([0, 1, 0, 2], [1, 0, 2, 0]), tmp_path / "a.mtx"
    kind = np.complex64 if np.iscomplexobj(values) else np.float32
    A = jsp.from_edges(*ends, np.array(values, kind), shape=(3, 3)).trim()
    jsp.write_mtx(path, A)
    assert path.read_text().split()[4] == found
    B = jsp.read_mtx(path, dtype=kind)
    for part in (np.real, np.imag):
        for same in (np.asarray, np.signbit):
            np.testing.assert_array_equal(same(part(B.data)), same(part(A.data)))


def test_a_symmetry_that_is_asked_for_takes_zeros_of_any_sign(tmp_path):
    A = jsp.from_edges([0, 1, 0, 2], [1, 0, 2, 0], np.array([0.0, 0.0, 1.0, -1.0], np.float32))
    jsp.write_mtx(tmp_path / "a.mtx", A, symmetry="skew-symmetric")
    np.testing.assert_array_equal(jsp.read_mtx(tmp_path / "a.mtx").todense(), A.todense())


@pytest.mark.parametrize(
    "ends, values, found",
    [
        (([5, 2**31 - 4], [2**31 - 4, 5]), [2.0, 2.0], "symmetric"),
        (([5, 2**31 - 4], [2**31 - 4, 5]), [2.0, -2.0], "skew-symmetric"),
        (([5, 7, 2**31 - 4], [6, 7, 6]), [3.0, 2.0, -2.0], "general"),
    ],
)
def test_few_entries_far_away_need_no_offset_a_row(tmp_path, monkeypatch, ends, values, found):
    n, path = 2**31 - 3, tmp_path / "a.mtx"
    A = jsp.from_edges(*ends, np.array(values, np.float32), shape=(n, n), format="coo").trim()
    kind = type(A.to_scipy())
    by_rows = kind.tocsr

    def small(matrix, *args, **kwargs):
        assert max(matrix.shape) < 2**24, "offsets of 8 GiB"
        return by_rows(matrix, *args, **kwargs)

    monkeypatch.setattr(kind, "tocsr", small)
    jsp.write_mtx(path, A)
    assert path.read_text().split()[4] == found
    jsp.write_edgelist(tmp_path / "a.csv", A)
    for B in (
        jsp.read_mtx(path, format="coo"),
        jsp.read_edgelist(tmp_path / "a.csv", weight="weight", shape=(n, n), format="coo"),
    ):
        B = B.trim()
        assert (B.row.tolist(), B.col.tolist(), B.data.tolist()) == (*ends, values)
    table = jsp.io.to_table(A)
    assert (table["source"], table["target"], table["weight"].tolist()) == (*ends, values)
