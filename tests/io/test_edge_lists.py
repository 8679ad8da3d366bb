"""Files and tables with an edge a row: what the standard library and NetworkX read of the same."""

import csv
import gzip
import io
import re
import warnings

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.io.tables import lines

pytestmark = pytest.mark.fast
ROADS = "from,to,km\nRome,Pisa,3\nPisa,Lucca,2.5\n\n# closed\nRome,Pisa,5\nBari,Bari,7\n"
NAMES = ["Rome", "Pisa", "Lucca", "Bari"]
KM = np.array([[0, 8, 0, 0], [0, 0, 2.5, 0], [0, 0, 0, 0], [0, 0, 0, 7]], np.float32)


@pytest.fixture
def write(tmp_path):
    def call(text, name="a.txt"):
        path = tmp_path / name
        opened = gzip.open if name.endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8", newline="") as file:
            file.write(text)
        return path

    return call


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_names_and_columns_of_a_header(write, name):
    A, labels = jsp.read_edgelist(write(ROADS, name), weight="km", labels=True)
    assert labels.names == NAMES
    np.testing.assert_array_equal(A.todense(), KM)
    back, _ = jsp.read_edgelist(write(ROADS, name), source="to", target="from", labels=labels)
    np.testing.assert_array_equal(back.todense(), (KM.T > 0) + 1.0 * (KM.T == 8))


@pytest.mark.parametrize("mark", ["\t", ",", ";", "|", " ", " \t "])
def test_integers_by_any_mark_as_networkx_reads_them(write, mark, monkeypatch):
    """In blocks of 48 characters, with what SNAP's files have on top."""
    monkeypatch.setattr(lines, "BLOCK", 48)
    pairs = np.random.default_rng(0).integers(0, 9, (20, 2))
    rows = [mark.join(map(str, pair)) for pair in pairs.tolist()]
    end = "\r\n" if mark == ";" else "\n"
    text = end.join(["# Nodes: 9 Edges: 20", "# FromNodeId\tToNodeId", *rows, ""])
    A = jsp.read_edgelist(write(text))
    kept = (row.encode() for row in rows)
    how = {"create_using": nx.MultiDiGraph, "nodetype": int}
    G = nx.read_edgelist(kept, delimiter=None if mark.isspace() else mark, **how)
    want = nx.to_numpy_array(G, nodelist=range(A.shape[0]))
    np.testing.assert_array_equal(A.todense(), want)
    both = jsp.read_edgelist(write(text), directed=False, dup="max", shape=(12, 12))
    want = np.maximum(want, want.T) > 0
    np.testing.assert_array_equal(both.todense()[:9, :9], want[:9, :9])
    assert both.shape == (12, 12)


def test_what_a_spreadsheet_writes(write):
    """A mark of the byte order, names in quotes with commas in them, spaces."""
    file = io.StringIO()
    table = [["a", "b", "w"], ["New York, NY", "Köln", 1.5], ['the "old" town', " x ", -2]]
    csv.writer(file).writerows(table)
    A, labels = jsp.read_edgelist(write("\ufeff" + file.getvalue()), weight="w", labels=True)
    assert labels.names == ["New York, NY", "Köln", 'the "old" town', "x"]
    assert A.data.tolist() == [1.5, -2.0]


def test_headers_found_and_told(write):
    assert jsp.read_edgelist(write("source target\n0 1\n")).nse == 1
    _, labels = jsp.read_edgelist(write("a b\nb c\n"), labels=True)
    assert labels.names == ["a", "b", "c"]
    _, labels = jsp.read_edgelist(write("a b\nb c\n"), labels=True, header=True)
    assert labels.names == ["b", "c"]
    assert jsp.read_edgelist(write("% none\n\n")).shape == (0, 0)
    assert jsp.read_edgelist(write("head er\n"), weight=2, header=True).shape == (0, 0)


def test_dtypes_and_formats(write):
    path = write("0 1 3\n1 0 4\n")
    A = jsp.read_edgelist(path, weight=2, dtype="int32", format="csc")
    assert A.dtype == np.int32 and A.format == "csc" and A.todense().tolist() == [[0, 3], [4, 0]]
    assert jsp.read_edgelist(path, dtype=bool).data.tolist() == [True, True]
    assert jsp.read_edgelist(path, shape=(2, 5)).shape == (2, 5)


WRONG = {
    "0 1\n0 x\n": ({}, r"line 2: `target` must be an integer; got 'x' \(labels=True takes"),
    "0 1\n1.5 0\n": ({}, "line 2: `source` must be an integer; got '1.5'"),
    "# c\n\n0 1\n0\n": ({}, "line 4: it has 1 columns, and `target` is column 1"),
    "0 1\n1 -3\n": ({}, "line 2: a vertex must be >= 0; got -3"),
    "0 1\n1 2\n2 9\n": ({"shape": (4, 4)}, r"line 3: a vertex must be in \[0, 4\); got 9"),
    "0 1 1.5\n0 1 heavy\n": ({"weight": 2}, "line 2: `weight` must be a number; got 'heavy'"),
    "0 1 1.5\n": ({"weight": 2, "dtype": "int32"}, "`weight` holds 1.5, which int32 does not"),
    "0 99999999999999999999\n1 2\n": ({"header": False}, "line 1: `target` must be an integer"),
    "a,b\n0,1\n": ({"source": "c"}, r"line 1: the header \['a', 'b'\] has no column 'c'"),
    "0,1\n": ({"source": "0", "header": False}, "by name, and `header` is False"),
    "a,b\n,c\n": ({"labels": True}, "line 2: an end has no name"),
    'a,b\n"c,d\n': ({"labels": True}, "line 2: a quote must end before"),
    "a b\na z\n": ({"labels": jsp.Labels("ab")}, "line 2: .*'z'"),
    "a b 1\na b\n": ({"labels": True, "weight": 2}, "line 2: it has 2 columns"),
    "0 2000000000\n": ({}, "its largest vertex is 2000000000.*labels=True"),
    "0 " + "1" * (1 << 22): ({}, "line 1 is longer than 4194304 characters"),
    "0 1\n0 \x80": ({}, "utf-8"),
    "": ({"source": -1}, "`source` must be the name or number of a column; got -1"),
    "0": ({"labels": True, "shape": (2, 2)}, "`shape` is that of `labels`"),
    "0 1": ({"directed": False, "shape": (2, 3)}, "`shape` must be square"),
}


@pytest.mark.parametrize("text", WRONG, ids=[repr(t[:9]) for t in WRONG])
def test_wrong_lines_are_named(tmp_path, text):
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode("latin-1"))
    how, message = WRONG[text]
    with pytest.raises(ValueError, match=message) as error:
        jsp.read_edgelist(path, **how)
    assert str(path) in str(error.value) or "`" in str(error.value)[:12]


def test_a_numpy_that_cuts_numbers_to_integers(write, monkeypatch):
    """2.0 does in `loadtxt`, with a warning; where it is an error, a ValueError."""
    load = np.loadtxt

    def cutting(lines, *args, **how):
        whole = [re.sub(r"\.\d+", "", line) for line in lines]
        if whole != lines:
            try:
                warnings.warn("parsing an integer via a float", DeprecationWarning, stacklevel=1)
            except DeprecationWarning as error:
                raise ValueError("could not convert string '1.5' to int64") from error
        return load(whole, *args, **how)

    monkeypatch.setattr(np, "loadtxt", cutting)
    assert jsp.read_edgelist(write("0 1\n1 0\n")).nnz == 2
    with pytest.raises(ValueError, match=r"line 2: `source` must be an integer; got '1.5'"):
        jsp.read_edgelist(write("0 1\n1.5 0\n"))


def test_a_vertex_far_away_needs_no_offsets(write):
    A = jsp.read_edgelist(write("0 2000000000\n"), format="coo")
    assert A.col.tolist() == [2_000_000_000]


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        jsp.read_edgelist(tmp_path / "absent.csv")
    with pytest.raises(IsADirectoryError):
        jsp.read_edgelist(tmp_path)
    (tmp_path / "a.csv.gz").write_bytes(b"0 1\n")
    with pytest.raises(ValueError, match="no readable list of edges.*gzip"):
        jsp.read_edgelist(tmp_path / "a.csv.gz")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt.gz"])
@pytest.mark.parametrize("named", [False, True])
def test_written_and_read_back_to_the_last_bit(tmp_path, name, named):
    values = np.float32([0.1, 1 / 3, -0.0, 3e38, 1e-45])
    A = jsp.from_edges([0, 1, 2, 3, 3], [1, 2, 3, 0, 3], values, shape=(4, 4))
    labels = jsp.Labels(["a,b", 'c "d"', "ö", "x"]) if named else None
    jsp.write_edgelist(tmp_path / name, A, labels)
    B = jsp.read_edgelist(tmp_path / name, weight="weight", labels=named)
    if named:
        B, found = B
        assert found.names == labels.names
    np.testing.assert_array_equal(B.data.view(jnp.int32), A.data.view(jnp.int32))
    np.testing.assert_array_equal(B.indices, A.indices)
    jsp.write_edgelist(tmp_path / name, jsp.pad(A, n=8), weight=None)
    assert jsp.read_edgelist(tmp_path / name).shape == (4, 4)
    with pytest.raises(ValueError, match="`labels` must be 4"):
        jsp.write_edgelist(tmp_path / name, A, jsp.Labels("ab"))


def table(kind):
    """The roads in a data frame of another library."""
    head, *rows = (line.split(",") for line in ROADS.split() if "," in line)
    columns = {n: list(c) for n, c in zip(head, zip(*rows, strict=True), strict=True)}
    columns["km"] = [float(x) for x in columns["km"]]
    if kind == "dict":
        return columns
    if kind in ("pyarrow", "stream"):
        made = pytest.importorskip("pyarrow").table(columns)
        return made if kind == "pyarrow" else Stream(made)
    return pytest.importorskip(kind).DataFrame(columns)


class Stream:
    """What only knows Arrow's C interface."""

    def __init__(self, held):
        self.__arrow_c_stream__ = held.__arrow_c_stream__


OTHERS = ["pandas", "polars", "pyarrow", "stream"]  # run where the extra `dev` is installed


@pytest.mark.parametrize(
    "kind", ["dict", *(pytest.param(k, marks=pytest.mark.long) for k in OTHERS)]
)
def test_tables_of_every_kind(kind):
    A, labels = jsp.io.from_table(table(kind), "from", "to", "km")
    assert labels.names == NAMES and all(type(name) is str for name in labels.names)
    np.testing.assert_array_equal(A.todense(), KM)
    with pytest.raises(ValueError, match=r"no column 'miles'.*'km'"):
        jsp.io.from_table(table(kind), "from", "to", "miles")
    made = jsp.io.to_table(A, labels, source="from", target="to", weight="km")
    if kind in ("pandas", "polars"):
        made = pytest.importorskip(kind).DataFrame(made)
    elif kind != "dict":
        made = pytest.importorskip("pyarrow").table(made)
    again, others = jsp.io.from_table(made, "from", "to", "km")
    assert others.names == NAMES and np.array_equal(again.todense(), KM)


def test_numbers_as_names_in_the_order_of_the_rows():
    tails, heads = np.random.default_rng(1).integers(-5, 5, (2, 30)) * 10**12
    A, labels = jsp.io.from_table({"source": tails, "target": heads})
    B, others = jsp.io.from_table({"source": tails.astype(object), "target": heads})
    assert labels.names == others.names and type(labels.names[0]) is int
    np.testing.assert_array_equal(A.todense(), B.todense())
    for missing in (None, np.nan):
        with pytest.raises(ValueError, match=r"row 1 lacks the name of an end; it has \('b',"):
            jsp.io.from_table({"source": ["a", "b"], "target": ["b", missing]})
    with pytest.raises(ValueError, match="`weight` must hold numbers"):
        jsp.io.from_table({"source": ["a"], "target": ["b"], "w": ["heavy"]}, weight="w")
    with pytest.raises(ValueError, match="`weight` must hold numbers; int too large"):
        jsp.io.from_table({"source": ["a"], "target": ["b"], "w": [10**400]}, weight="w")
    for wrong in (-1, 2**64 - 1):
        ends = {"source": [0], "target": np.array([wrong], np.int64 if wrong < 0 else np.uint64)}
        with pytest.raises(ValueError, match=f"`target` must hold vertices.* got {wrong}"):
            jsp.io.from_table(ends, labels=False)
    with pytest.raises(TypeError, match="`frame` must be a data frame"):
        jsp.io.from_table(3)


def test_labels_of_a_table_are_as_of_a_file():
    table = {"source": [0, 2], "target": [2, 1], "km": [3, 4]}
    A = jsp.io.from_table(table, weight="km", labels=False, shape=(4, 4))
    np.testing.assert_array_equal(A.todense()[[0, 2], [2, 1]], [3, 4])
    assert A.shape == (4, 4) and jsp.io.from_table(table, labels=False).shape == (3, 3)
    known = jsp.Labels([2, 7, 1, 0])
    B, labels = jsp.io.from_table(table, weight="km", labels=known)
    assert labels is known and B.todense()[[3, 0], [0, 2]].tolist() == [3, 4]
    assert jsp.io.from_table(table, labels=True)[1].names == [0, 2, 1]
    for how, error, words in (
        ({"labels": ["a"]}, TypeError, "`labels` must be True, False or Labels"),
        ({"labels": jsp.Labels([0, 1])}, ValueError, "`name` must be that of a vertex; got 2"),
        ({"shape": (4, 4)}, ValueError, "`shape` is that of `labels`"),
        ({"labels": False, "shape": (2, 2)}, ValueError, "must lie in"),
    ):
        with pytest.raises(error, match=words):
            jsp.io.from_table(table, **how)
    with pytest.raises(ValueError, match="labels=True takes names"):
        jsp.io.from_table({"source": ["a"], "target": ["b"]}, labels=False)


def test_what_is_not_installed_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "a.parquet"
    path.write_bytes(b"")
    A = jsp.from_edges([0], [1])
    for call in (lambda: jsp.read_edgelist(path), lambda: jsp.write_edgelist(path, A)):
        with pytest.raises(ImportError, match=re.escape("pip install 'jaxspv[data]'")):
            call()


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_parquet_and_feather(tmp_path, suffix):
    arrow = pytest.importorskip("pyarrow")
    path = tmp_path / f"a.{suffix}"
    A = jsp.from_edges([0, 1, 2], [1, 2, 0], [0.1, 2.0, 3.0])
    if suffix == "parquet":
        jsp.write_edgelist(path, A)
    else:
        pytest.importorskip("pyarrow.feather").write_feather(arrow.table(jsp.io.to_table(A)), path)
    B = jsp.read_edgelist(path, weight="weight", dtype=A.dtype)
    np.testing.assert_array_equal(B.todense(), A.todense())
    _, labels = jsp.read_edgelist(path, source=1, target="source", labels=True)
    assert labels.names == [1, 0, 2]
    again, _ = jsp.read_edgelist(path, labels=jsp.Labels([2, 1, 0]))
    np.testing.assert_array_equal(again.todense(), (np.asarray(A.todense()) > 0)[::-1, ::-1])
    for column, message in ((7, "no column number 7"), ("km", "no column 'km'.*'weight'")):
        with pytest.raises(ValueError, match=message):
            jsp.read_edgelist(path, weight=column)
    with pytest.raises(ValueError, match="`source` holds float"):
        jsp.read_edgelist(path, source="weight")
    path.write_bytes(b"not so")
    with pytest.raises(ValueError, match="no readable list of edges"):
        jsp.read_edgelist(path)
