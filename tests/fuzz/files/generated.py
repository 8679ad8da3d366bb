"""Files whose content is known: read for what they are, or refused where that cannot be.

Names come back to the last character, numbers are those that Python reads, a dtype holds each value
that it is asked for, and the first line of a list of edges is lost only where it holds words alone.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import pathlib
import random
import tempfile
from typing import Any

import numpy as np

import jaxspv as jsp

from ..cases import Case

CHARACTERS = [
    "#",
    "%",
    '"',
    "'",
    " ",
    "\t",
    ",",
    ";",
    "|",
    ":",
    "\n",
    "\r",
    "\\",
    "a",
    "b",
    "1",
    "-",
]
CHARACTERS += [".", "é", "\u00a0", "\u2028", "\x85", "\x1c", "\0", "\ufeff", "\U0001d11e", "\ud800"]
WORDS = ["source", "target", "weight", "nan", "None", "0", "a b", '""', "# a", "x", "y", "z"]
TOKENS = [
    "0",
    "1",
    "7",
    "-3",
    "1.5",
    ".5",
    "5.",
    "-0.0",
    "1e3",
    "1E-3",
    "1.5D+02",
    "2d1",
    "1e39",
    "inf",
]
TOKENS += [
    "-Infinity",
    "nan",
    "NaN",
    "+2",
    "0x10",
    "1_0",
    "1,5",
    "1e",
    "1e+",
    "--1",
    "e5",
    ".",
    "-",
    "",
]
TOKENS += [
    "\u0661",
    "1e400",
    "12345678901234567890",
    "300",
    "70000",
    "007",
    "1+5",
    "inf inf",
    "1 2",
]
PIECES = list("0123456789+-.eEdDx_ ") + ["inf", "nan"]
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32"]


def run(case: Case) -> tuple[str, ...]:
    """Raises where a file of the case is not read for what it is."""
    asked: set[str] = set()
    with tempfile.TemporaryDirectory() as name:
        for number in range(case["files"]):
            rng = random.Random(case["seed"] * 1009 + number)
            path = pathlib.Path(name) / f"a{case['suffix']}"
            try:
                asked.add(KINDS[case["what"]](path, rng))
            except Exception as error:
                held = path.read_bytes()[:300] if path.exists() else b""
                raise AssertionError(f"file {number}: {error!r}; it holds {held!r}") from error
    return tuple(asked)


def names(path: pathlib.Path, rng: random.Random) -> str:
    """Names of any characters, written with any mark; the standard library reads the same."""
    n, mark = rng.randint(2, 5), rng.choice([None, None, ",", ";", "|", "\t", " ", ":"])
    drawn: dict[str, None] = {}
    while len(drawn) < n:
        some = "".join(rng.choices(CHARACTERS, k=rng.randint(0, 4)))
        drawn[rng.choice([some, some, rng.choice(WORDS)])] = None
    labels, weight = jsp.Labels(drawn), rng.choice([None, "weight", "w"])
    row, col = ([rng.randrange(n) for _ in range(6)] for _ in range(2))
    A = jsp.from_edges(row, col, np.float32([rng.gauss(0, 1) for _ in row]), shape=(n, n))
    lost = any(not _holdable(name, mark) for name in drawn)
    path.unlink(missing_ok=True)
    try:
        jsp.write_edgelist(path, A, labels, weight=weight, delimiter=mark)
    except ValueError as error:
        assert lost and "`labels` holds" in str(error), f"{list(drawn)} refused: {error}"
        assert not path.exists()
        return "refused"
    assert not lost, f"{list(drawn)} were written"
    sent: dict[str, Any] = {"delimiter": mark} if mark == ":" else {}
    B, found = jsp.read_edgelist(path, labels=True, weight=weight, **sent)
    want = _by_name(A, labels)
    assert _by_name(B, found) == (want if weight else dict.fromkeys(want, 1.0))
    if mark != " ":
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        usual = "," if path.suffix == ".csv" else "\t"
        rows = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=mark or usual)
        assert {tuple(line[:2]) for line in list(rows)[1:]} == set(want)
    return "csv"


def _holdable(name: str, mark: str | None) -> bool:
    """Whether a line can hold a name: it has one, ends nowhere in it, and is Unicode."""
    whole = name and not set(name) & {"\n", "\r", "\ud800"}
    alone = mark != " " or (name.split() == [name] and name[0] not in '#%"')
    return bool(whole and alone)


def _by_name(A: Any, labels: jsp.Labels) -> dict[tuple[str, str], float]:
    row, col, values = (np.asarray(x)[: int(A.count)].tolist() for x in (*A.rowcol(), A.data))
    ends = zip(row, col, values, strict=True)
    return {(labels.names[i], labels.names[j]): value for i, j, value in ends}


def _number(text: str, *, fortran: bool) -> float | None:
    """What Python reads, without what only Python does; None for no number."""
    if "_" in text or not text.isascii():
        return None
    if fortran:
        text = text.replace("d", "e").replace("D", "e")
    try:
        value = float(text)
    except ValueError:
        return None
    beyond = math.isfinite(value) and abs(value) > float(np.finfo(np.float32).max)
    return None if beyond or math.isinf(value) and "n" not in text.lower() else value


def _token(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return rng.choice(TOKENS)
    return "".join(rng.choices(PIECES, k=rng.randint(1, 5)))


def _write(path: pathlib.Path, text: str) -> None:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def numbers(path: pathlib.Path, rng: random.Random) -> str:
    """A number written in some way, between two that are good."""
    text, labels = _token(rng), rng.random() < 0.3
    if path.suffix == ".csv":
        _write(path, f"0;1;2\n1;2;{text}\n2;0;1\n")
        value, read = (
            _number(text, fortran=False),
            lambda: jsp.read_edgelist(path, weight=2, labels=labels, delimiter=";"),
        )
    else:
        field, layout = rng.choice(["real", "integer"]), rng.choice(["coordinate", "array"])
        lines = ["2", text, "1"] if layout == "array" else ["1 2 2", f"2 3 {text}", "3 1 1"]
        sizes = "3 1" if layout == "array" else "3 3 3"
        body = "\n".join([sizes, *lines]) + rng.choice(["", "\n", "\n\n"])
        _write(path, f"%%MatrixMarket matrix {layout} {field} general\n% c\n{body}")
        value, read = _number(text, fortran=True), lambda: jsp.read_mtx(path)
        plain = text.strip().removeprefix("-").isdigit() and abs(int(value or 0)) < 2**31
        value = value if field == "real" or plain else None
    try:
        A = read()
    except ValueError as error:
        allowed = value is None or text.strip().startswith("+") or "-nan" in text.lower()
        assert allowed and path.name in str(error), f"{text!r} refused: {error}"
        return "refused"
    A = A[0] if isinstance(A, tuple) else A
    assert value is not None, f"{text!r} was read as {A.data}"
    got = np.asarray(A.todense())
    want = np.float32(value) if A.dtype == np.float32 else value
    got = got[1, 2] if got.shape[1] == 3 else got[1, 0]
    assert np.array_equal(got, want, equal_nan=True), f"{text!r} was read as {got}"
    return "float"


def first_lines(path: pathlib.Path, rng: random.Random) -> str:
    """A first line of any fields: an edge, an error, or words alone, which are a header."""
    fields = [
        rng.choice([_token(rng), rng.choice(WORDS)]).strip() for _ in range(rng.randint(1, 3))
    ]
    path.write_text(";".join(fields) + "\n1;2;5\n")
    skipped = fields[0].startswith("#") or not any(fields) and len(fields) == 1
    words = len(fields) > 1 and all(fields[:2]) and all(map(_is_word, fields))
    try:
        A = jsp.read_edgelist(path, delimiter=";")
    except ValueError as error:
        assert not skipped and path.name in str(error), str(error)
        return "refused"
    edges = int(np.asarray(A.data)[: int(A.count)].sum())
    assert edges == 2 or skipped or words, f"{fields} is gone"
    if edges == 2:
        assert all(field.lstrip("+").isdigit() or field == "-0" for field in fields[:2]), fields
    return "edges"


def _is_word(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not text.lstrip("+-.")[:1].isdigit()
    return False


def dtypes(path: pathlib.Path, rng: random.Random) -> str:
    """Values at the ends of what a dtype holds, and beyond."""
    dtype = np.dtype(rng.choice(DTYPES))
    info = np.iinfo(rng.choice(DTYPES[1:7]))
    ends = [info.min, info.max, info.min - 1, info.max + 1, 0, 1, rng.randint(-5, 5)]
    values = [rng.choice([*ends, 0.5, 65504.0, 65520.0, 1e30]) for _ in range(3)]
    if path.suffix == ".npz":
        held = [v for v in values if _held(v, dtype)] or [1]
        A = jsp.from_edges(range(len(held)), range(len(held)), np.array(held, dtype))
        jsp.save_npz(path, A)
        B = jsp.load_npz(path)
        assert B.dtype == dtype and np.asarray(B.data).tobytes() == np.asarray(A.data).tobytes()
        return "bits"
    if path.suffix == ".csv":
        path.write_text("".join(f"{k},{k},{v}\n" for k, v in enumerate(values)))
        read = lambda: jsp.read_edgelist(path, weight=2, dtype=dtype)  # noqa: E731
    else:
        field = "integer" if all(isinstance(v, int) for v in values) else "real"
        entries = "".join(f"{k} {k} {v}\n" for k, v in enumerate(values, 1))
        path.write_text(f"%%MatrixMarket matrix coordinate {field} general\n3 3 3\n{entries}")
        read = lambda: jsp.read_mtx(path, dtype=dtype)  # noqa: E731
    try:
        A = read()
    except ValueError as error:
        assert not all(_held(v, dtype) for v in values), f"{values} as {dtype} refused: {error}"
        return "refused"
    assert all(_held(v, dtype) for v in values), f"{values} as {dtype} were read as {A.data}"
    assert A.dtype == dtype and np.array_equal(A.data, np.array(values, object).astype(dtype))
    return "python"


def _held(value: float, dtype: np.dtype) -> bool:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return value == int(value) and info.min <= value <= info.max
    if dtype.kind == "b":
        return value in (0, 1)
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.float64(value).astype(dtype)))


def complexes(path: pathlib.Path, rng: random.Random) -> str:
    """Complex values there and back, but for lists of edges, which refuse them."""
    parts = [0.0, -0.0, 1.0, 1e-45, 3e38, math.inf, math.nan, rng.gauss(0, 1)]
    values = np.complex64([complex(rng.choice(parts), rng.choice(parts)) for _ in range(4)])
    row, col = [0, 1, 1, 2], [1, 0, 2, 2]
    values[1] = rng.choice([values[0], -values[0], values[1]])
    A = jsp.from_edges(row, col, values, shape=(3, 3), nse=4)
    path.unlink(missing_ok=True)
    if path.suffix == ".csv":
        try:
            jsp.write_edgelist(path, A)
        except ValueError as error:
            assert "must hold real values" in str(error) and not path.exists()
            return "refused"
        raise AssertionError("complex values were written")
    (jsp.save_npz if path.suffix == ".npz" else jsp.write_mtx)(path, A)
    B = jsp.load_npz(path) if path.suffix == ".npz" else jsp.read_mtx(path)
    assert B.dtype == A.dtype and np.array_equal(B.indices, A.indices)
    for part in (np.real, np.imag):
        got, want = part(np.asarray(B.data)), part(np.asarray(A.data))
        assert np.array_equal(got, want, equal_nan=True), f"{A.data} was read as {B.data}"
        signs = [np.signbit(part) & ~np.isnan(part) for part in (got, want)]
        assert np.array_equal(*signs), f"{A.data} was read as {B.data}"
    return "values"


KINDS = {
    "names": names,
    "first lines": first_lines,
    "numbers": numbers,
    "dtypes": dtypes,
    "complex": complexes,
}
