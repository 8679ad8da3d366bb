"""What NumPy reads of lines is what reading line by line gives, and errors are the same."""

import random

import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.io.tables import lines

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


def refuse(*_):
    raise ValueError("left to another")


@pytest.mark.parametrize("mark", [",", "\t", " ", "·"])
@pytest.mark.parametrize("seed", range(15))
def test_numpy_reads_what_python_reads(tmp_path, monkeypatch, mark, seed):
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
            by_line.setattr(lines.Text, "_by_numpy", refuse)
            assert seen == outcome(path, **how | more)


def test_most_files_are_read_by_numpy(tmp_path, monkeypatch):
    monkeypatch.setattr(lines.Text, "_by_line", refuse)
    path = tmp_path / "a.csv"
    path.write_text('# c\nfrom, to, km\n"é x", b ,1.5\r\n\n  # d\nb\t,"%,",-2e3\n')
    A, labels = jsp.read_edgelist(path, source="from", target="to", weight="km", labels=True)
    assert labels.names == ["é x", "b", "%,"]
    assert A.todense().tolist() == [[0, 1.5, 0], [0, 0, -2000], [0, 0, 0]]


class Unknown:
    """As `pandas.NA`: neither equal to itself nor not."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self

    __ne__ = __eq__  # pyright: ignore[reportAssignmentType]

    def __bool__(self):
        raise TypeError("boolean value is ambiguous")


@pytest.mark.parametrize("bad", [None, float("nan"), Unknown()])
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
