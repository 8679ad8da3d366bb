"""Names read by NumPy are those that reading line by line gives, and errors are the same."""

import random

import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.io.tables import lines
from jaxspv.io.tables.names import Names

pytestmark = pytest.mark.fast
WORDS = [
    "a",
    "b c",
    "é",
    "\N{GRINNING FACE}",
    "x" * 23,
    "x" * 25,
    "x" * 26,
    "%",
    "#",
    '"q"',
    "1",
    "2.5",
]
WORDS += ["", " ", "\x85", "\u00a0a", "1_0", "inf", "nan", "y" * 600, "y" * 599 + "z", '"', '"a,b"']


def outcome(path, **how):
    try:
        A, labels = jsp.read_edgelist(path, **how)
    except ValueError as error:
        return str(error)
    return labels.names, A.indptr.tolist(), A.indices.tolist(), A.data.tolist()


@pytest.mark.parametrize("mark", [",", "\t", " ", "·"])
@pytest.mark.parametrize("seed", range(15))
def test_the_bytes_say_what_the_lines_say(tmp_path, monkeypatch, mark, seed):
    draw = random.Random(seed)
    words = draw.choices(WORDS[: draw.choice([8, 12, len(WORDS)])], k=6)
    rows = [draw.choices(words, k=draw.choice([2, 3, 3])) for _ in range(60)]
    pad = draw.choice(["", "", " "])
    text = "\n".join(
        draw.choice(["", *["# c\n"] * (seed % 2)]) + (pad + mark).join(r) for r in rows
    )
    path = tmp_path / "a.txt"
    path.write_text(draw.choice(["", "\ufeff"]) + text + draw.choice(["", "\n", "\n\n"]), "utf-8")
    how = {"labels": True, "delimiter": None if mark == " " else mark}
    given = {"labels": jsp.Labels([w.strip().strip('"') for w in dict.fromkeys(words[:4])])}
    monkeypatch.setattr(lines, "BLOCK", 2000)
    for more in ({}, {"weight": 2}, {"weight": 2, "dtype": np.int64}, given, {"header": True}):
        seen = outcome(path, **how | more)
        with monkeypatch.context() as by_line:
            by_line.setattr(lines, "columns_of", lambda *_: None)
            assert seen == outcome(path, **how | more)


def test_most_files_are_read_by_their_bytes(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(lines.Text, "_names", refuse)
    path = tmp_path / "a.csv"
    path.write_text('# c\nfrom, to, km\n"é x", b ,1.5\r\n\n  # d\nb\t,"%",-2e3\n')
    A, labels = jsp.read_edgelist(path, source="from", target="to", weight="km", labels=True)
    assert labels.names == ["é x", "b", "%"]
    assert A.todense().tolist() == [[0, 1.5, 0], [0, 0, -2000], [0, 0, 0]]


@pytest.mark.parametrize("key", [0, 1, None])
@pytest.mark.parametrize("stem", ["", "z" * 14, "z" * 22, "z" * 510])
def test_names_are_numbered_as_they_come(key, stem):
    """Whatever the key of the hashes: 0 gives all names one hash."""
    draw, names, expected = random.Random(0), Names(), {}
    names.key = names.key if key is None else np.uint64(key)
    pool = [stem + "".join(draw.choices("ab\0é", k=draw.randint(0, 9))) for _ in range(200)]
    for size in (0, 1, 3, 400, 3000):
        block = draw.choices(pool, k=size)
        for name in block:
            expected.setdefault(name, len(expected))
        assert np.asarray(names.of_texts(block)).tolist() == [expected[name] for name in block]
    assert names.since(0) == list(expected)
    assert names.of_texts(["a", "b\nc"]) is None


@pytest.mark.parametrize("bad", [None, float("nan")])
def test_a_name_that_is_missing_among_texts(bad):
    table = {"source": ["a", "b", bad], "target": ["b", "c", "a"]}
    with pytest.raises(ValueError, match="row 2 lacks the name of an end"):
        jsp.io.from_table(table)


def test_tables_of_texts_and_of_other_names():
    for names in (["a", "b\n", "\ud800"], ["a", 1, 2.5]):
        tails, heads = [names[0], names[2], names[1]], [names[1], names[0], names[1]]
        A, labels = jsp.io.from_table({"source": tails, "target": heads})
        assert labels.names == names
        assert A.todense().tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0]]
        again = jsp.io.from_table({"source": tails, "target": heads}, labels=labels)[0]
        assert again.todense().tolist() == A.todense().tolist()
        with pytest.raises(ValueError, match="`name` must be that of a vertex"):
            jsp.io.from_table({"source": tails, "target": ["c"] * 3}, labels=labels)
