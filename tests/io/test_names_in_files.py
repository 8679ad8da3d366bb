"""Names of vertices in files: there and back to the last character, or refused; headers."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

pytestmark = pytest.mark.fast
KEPT = ["#a", "%b", " #a", " a", "a ", "\t", "a\tb", "a,b", "a;b|c", '"', '"a"', 'a"b', '""', "'"]
KEPT += ["a b", "\u00a0a", "a\x85", "\x1c", "   ", "a\u2028b", "a\0", "\ufeffa", "None", "nan", "ö"]
KEPT += ["source", "-1", "1_0", "\\", "\\n", "\N{GRINNING FACE}", "a" * 200_000]
LOST = ["", "a\nb", "a\rb", "\r", "\ud800"]
TAILS, HEADS, VALUES = [0, 1, 0, 2], [1, 0, 0, 1], np.float32([1, 2.5, 3, -1])


def graph():
    return jsp.from_edges(TAILS, HEADS, VALUES, shape=(3, 3))


def by_name(A, labels):
    """The values by the names of both ends."""
    row, col, values = (np.asarray(x)[: int(A.count)] for x in (*A.rowcol(), A.data))
    names = labels.names
    ends = zip(row.tolist(), col.tolist(), values.tolist(), strict=True)
    return {(names[i], names[j]): value for i, j, value in ends}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz"])
@pytest.mark.parametrize(
    "names", [KEPT[k : k + 2] for k in range(len(KEPT) - 1)], ids=lambda n: ascii(n)[:24]
)
def test_names_come_back_as_they_were(tmp_path, name, names):
    labels = jsp.Labels([*names, "plain"])
    jsp.write_edgelist(tmp_path / name, graph(), labels)
    A, found = jsp.read_edgelist(tmp_path / name, labels=True, weight="weight")
    assert by_name(A, found) == by_name(graph(), labels)
    again = jsp.read_edgelist(tmp_path / name, labels=labels, weight="weight")[0]
    np.testing.assert_array_equal(again.todense(), graph().todense())


@pytest.mark.parametrize("name", LOST, ids=ascii)
def test_names_that_no_line_holds_are_refused(tmp_path, name):
    labels = jsp.Labels(["a", name, "b"])
    with pytest.raises(ValueError, match="`labels` holds .*cannot hold: a .parquet file can"):
        jsp.write_edgelist(tmp_path / "a.csv", graph(), labels)
    assert not (tmp_path / "a.csv").exists()


def test_names_of_other_kinds(tmp_path):
    path = tmp_path / "a.csv"
    jsp.write_edgelist(path, graph(), jsp.Labels([10, 20, -3]))
    assert sorted(jsp.read_edgelist(path, labels=True)[1].names) == ["-3", "10", "20"]
    for names in ([None, "a", "b"], [b"a", "b", "c"], [(0, 1), (1, 1), (1, 0)]):
        with pytest.raises(
            ValueError, match="`labels` must be text or numbers in a text file; got"
        ):
            jsp.write_edgelist(path, graph(), jsp.Labels(names))
    with pytest.raises(ValueError, match="`labels` holds '1' and 1, which are one name"):
        jsp.write_edgelist(path, graph(), jsp.Labels(["1", 1, 2]))


@pytest.mark.parametrize("mark", [",", ";", "|", "\t", " ", ":"])
def test_every_mark_is_found_out_or_told(tmp_path, mark):
    labels = jsp.Labels(
        ["a,b;c|d", "#x", '"'][: 1 + (mark != " ")] + ["p", "q"][: 1 + (mark == " ")]
    )
    jsp.write_edgelist(tmp_path / "a.txt", graph(), labels, delimiter=mark)
    sent = {"delimiter": ":"} if mark == ":" else {}
    A, found = jsp.read_edgelist(tmp_path / "a.txt", labels=True, weight="weight", **sent)
    assert by_name(A, found) == by_name(graph(), labels)
    jsp.write_edgelist(tmp_path / "a.txt", graph(), delimiter=mark)
    A = jsp.read_edgelist(tmp_path / "a.txt", weight="weight", **sent)
    np.testing.assert_array_equal(A.todense(), graph().todense())


def test_a_blank_between_columns_holds_no_names_with_blanks(tmp_path):
    for name in ("a b", '"', "\u00a0"):
        with pytest.raises(ValueError, match="which a line with ' ' between its columns"):
            path = tmp_path / "a.txt"
            jsp.write_edgelist(path, graph(), jsp.Labels([name, "p", "q"]), delimiter=" ")


@pytest.mark.parametrize("mark", ["", "ab", '"', "\n", "1", "e", ".", "-", 3])
def test_marks_that_numbers_hold_are_refused(tmp_path, mark):
    jsp.write_edgelist(tmp_path / "a.csv", graph())
    with pytest.raises(ValueError, match="`delimiter` must be one character"):
        jsp.write_edgelist(tmp_path / "b.csv", graph(), delimiter=mark)
    with pytest.raises(ValueError, match="`delimiter` must be one character"):
        jsp.read_edgelist(tmp_path / "a.csv", delimiter=mark)


def test_names_of_the_column_of_weights(tmp_path):
    for weight in ("source", "target", "", "a,b", "a\nb", '"', " a", 7):
        with pytest.raises(ValueError, match="`weight` must be a"):
            jsp.write_edgelist(tmp_path / "a.csv", graph(), weight=weight)


def test_columns_of_a_table_differ():
    for names in ({"weight": "source"}, {"source": "target"}, {"target": "weight"}):
        with pytest.raises(ValueError, match="`source`, `target` and `weight` must differ"):
            jsp.io.to_table(graph(), **names)


def test_the_header_that_is_written_is_no_edge(tmp_path):
    for weight in (None, "weight"):
        jsp.write_edgelist(tmp_path / "a.csv", graph(), jsp.Labels("abc"), weight=weight)
        assert sorted(jsp.read_edgelist(tmp_path / "a.csv", labels=True)[1].names) == [
            "a",
            "b",
            "c",
        ]


def test_complex_values_are_refused(tmp_path):
    A = jsp.from_edges([0], [1], jnp.ones(1, jnp.complex64))
    with pytest.raises(ValueError, match="`A` must hold real values.*complex64"):
        jsp.write_edgelist(tmp_path / "a.csv", A)


def test_quotes_in_files_of_others(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a, b\n "x, y" ,"z ""q"" "\n p , "r"\n')
    labels = jsp.read_edgelist(path, labels=True, source="a", target="b")[1]
    assert labels.names == ["x, y", 'z "q" ', "p", "r"]
    for line in ('"a,b', 'a,"b', '"a"b,c', '"a" "b",c'):
        path.write_text(f"p,q\n{line}\n")
        with pytest.raises(ValueError, match="line 2: a quote must end before"):
            jsp.read_edgelist(path, labels=True)


def test_a_quote_does_not_swallow_the_next_line(tmp_path):
    (tmp_path / "a.csv").write_text('0,1,"x\n1,2,y"\n2,0,z\n')
    with pytest.raises(ValueError, match="line 1: a quote must end before"):
        jsp.read_edgelist(tmp_path / "a.csv")


BROKEN = [
    "0 x",
    "x 1",
    "1.5 2",
    "1_0 3",
    "99999999999999999999 1",
    "0x1 0x2",
    "0 1x",
    "a 1",
    "nan b",
]


@pytest.mark.parametrize("line", [*BROKEN, "1.0 2.0", "a b 3"])
@pytest.mark.parametrize("mark", [" ", ","])
def test_a_broken_first_line_is_no_header(tmp_path, line, mark):
    path = tmp_path / "a.txt"
    path.write_text(f"# c\n{line}\n1 2\n".replace(" ", mark).replace("#" + mark, "# "))
    with pytest.raises(ValueError, match="line 2: .* must be an integer.*header=True"):
        jsp.read_edgelist(path)
    assert jsp.read_edgelist(path, header=True).shape == (3, 3)


@pytest.mark.parametrize("line", ["from to", "id1 id2", "node_1 node_2 t", "Source Target Weight"])
def test_a_line_of_words_is_a_header(tmp_path, line):
    (tmp_path / "a.txt").write_text(f"{line}\n1 2 3\n")
    assert jsp.read_edgelist(tmp_path / "a.txt").shape == (3, 3)


@pytest.mark.parametrize("line", ["edges", ",", ",a", "a,"])
def test_a_line_without_two_words_is_no_header(tmp_path, line):
    (tmp_path / "a.txt").write_text(f"{line}\n1,2\n")
    with pytest.raises(ValueError, match="line 1: .* is neither an edge nor a header"):
        jsp.read_edgelist(tmp_path / "a.txt")


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_tables_hold_any_name_or_refuse_it(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    path = tmp_path / f"a.{suffix}"
    for names in (["", "a\nb", " a"], [1, 2, 3], [b"a", b"b", b""]):
        jsp.write_edgelist(path, graph(), jsp.Labels(names))
        A, found = jsp.read_edgelist(path, labels=True, weight="weight")
        assert by_name(A, found) == by_name(graph(), jsp.Labels(names))
    for names, message in (
        ([None, "a", "b"], "must not hold None"),
        ([float("nan"), 1.0, 2.0], "must not hold None or NaN"),
        (["1", 1, 2], "must be names of one kind"),
        ([(0, 1), "a", "b"], "must be names of one kind"),
    ):
        with pytest.raises(ValueError, match=message):
            jsp.write_edgelist(path, graph(), jsp.Labels(names))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@pytest.mark.parametrize("low, high", [(-3, 40), (-128, 128), (2**62, 2**62 + 9), (0, 2**63 - 1)])
def test_integers_are_numbered_in_the_order_of_a_table(dtype, low, high):
    """Near each other or not."""
    ends = np.iinfo(dtype)
    low, high = max(low, ends.min), min(high, ends.max)
    if low > high:
        pytest.skip("the dtype holds none of them")
    tails, heads = np.random.default_rng(3).integers(low, high, (2, 60), dtype, endpoint=True)
    tails[:2], tails[30:] = (low, high), tails[:30]
    A, found = jsp.io.from_table({"source": tails, "target": heads})
    both = [int(name) for pair in zip(tails, heads, strict=True) for name in pair]
    assert found.names == list(dict.fromkeys(both))
    want = dict.fromkeys(zip(tails.tolist(), heads.tolist(), strict=True), 0.0)
    for pair in zip(tails.tolist(), heads.tolist(), strict=True):
        want[pair] += 1
    assert by_name(A, found) == want
