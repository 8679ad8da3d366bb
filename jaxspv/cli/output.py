"""What the commands write: arrays by vertex as tables, bars in the terminal, a line that counts."""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..interop.optional import required
from ..io.opening import written_whole

SUFFIXES = (".npz", ".csv", ".tsv", ".parquet")
BARS, WIDTH = 12, 40
HELD = ("parents", "vertices")  # columns that hold vertices


def check_output(path: str | None) -> None:
    """Refuses, before any work is done, where no table can be written."""
    if path is None:
        return
    if not path.endswith(SUFFIXES):
        raise ValueError(f"`--output` must end in {', '.join(SUFFIXES)}; got {path}.")
    check_reader(path)
    check_writable(path)


def check_writable(path: str) -> None:
    """Refuses, before any work is done, where no file can be written."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise ValueError(f"{path} is a directory, not a file to write.")
    if not os.path.isdir(folder):
        raise ValueError(f"cannot write {path}: there is no folder {folder}.")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise ValueError(f"cannot write {path}: permission denied.")


def check_reader(path: str) -> None:
    """ImportError unless what writes a file of this suffix is installed."""
    if path.endswith(".parquet"):
        required("pyarrow", "a .parquet file")


def save_table(args: argparse.Namespace, **columns: Any) -> None:
    """Writes an array a name to `--output`, vertices by their names, an absent one as nothing."""
    path, names = args.output, args.names
    if path is None:
        return
    arrays = {name: np.asarray(array) for name, array in columns.items()}
    count = len(next(iter(arrays.values())))
    if names is not None:
        known = np.array([*names.names, ""])  # the last one: -1
        arrays = {k: known[v] if k in HELD else v for k, v in arrays.items()}
    if not {"vertices", "triangles"} & set(arrays):  # these have no row a vertex
        vertex = np.arange(count) if names is None else known[:count]
        arrays = {"vertex": vertex} | arrays
    if path.endswith(".npz") and names is None:
        arrays.pop("vertex", None)
    with written_whole(path) as part:
        _write(part, arrays)


def _write(path: str, arrays: dict[str, np.ndarray]) -> None:
    """Columns in the form that the suffix says."""
    if path.endswith(".npz"):
        return np.savez_compressed(path, allow_pickle=False, **arrays)
    if path.endswith(".parquet"):
        table = required("pyarrow", path).table(arrays)
        return required("pyarrow.parquet", path).write_table(table, path)
    with open(path, "w", encoding="utf-8", newline="") as file:
        mark = "," if path.endswith(".csv") else "\t"
        writer = csv.writer(file, delimiter=mark, lineterminator="\n")
        writer.writerow(arrays)
        writer.writerows(zip(*(array.tolist() for array in arrays.values()), strict=True))


def bars(counts: Any) -> list[tuple[str, int]]:
    """(label, count) of at most BARS ranges of equal width: what stands at k is counts[k]."""
    counts = np.asarray(counts)
    if not len(counts):
        return []
    wide = -(-len(counts) // BARS)
    sums = np.add.reduceat(counts, range(0, len(counts), wide))
    last = len(counts) - 1
    ends = [(k * wide, min((k + 1) * wide - 1, last)) for k in range(len(sums))]
    labels = [str(a) if a == b else f"{a}-{b}" for a, b in ends]
    return list(zip(labels, sums.tolist(), strict=True))


def histogram(title: str, rows: list[tuple[str, int]]) -> list[str]:
    """Lines with a bar each, the longest WIDTH wide; empty ranges at both ends left out."""
    while rows and not rows[-1][1]:
        rows = rows[:-1]
    while rows and not rows[0][1]:
        rows = rows[1:]
    most = max((count for _, count in rows), default=0)
    if not most:
        return []
    width = max(len(label) for label, _ in rows)
    lines = [f"{title}:"]
    for label, count in rows:
        eighths = round(8 * WIDTH * count / most)
        part = "" if eighths % 8 == 0 else " ▏▎▍▌▋▊▉"[eighths % 8]
        bar = "█" * (eighths // 8) + part
        lines.append(f"  {label:>{width}} {bar or '▏' if count else ''} {count:,}")
    return lines


LABELS = {"gteps": "GTEPS", "time_ms": "time, median ms", "dtype": "values"}


def show(report: dict[str, Any], verbose: bool = False) -> None:
    """Prints a report for people: a value a line, then tables and bars, the plan if verbose."""
    later = ("level_sizes", "row_lengths")
    for name, value in report.items():
        label = LABELS.get(name, name.replace("_", " "))
        if name in later or (name == "plan" and not verbose):
            continue
        if name == "plan":
            print(f"{'plan':<21}" + str(value).replace("\n", "\n" + " " * 21))
        elif isinstance(value, list):
            print(f"{label}:")
            for row in value:
                cells = map(_text, row)
                if isinstance(row, dict):
                    cells = (f"{k.replace('_', ' ')} {_text(c)}" for k, c in row.items())
                print("", *cells, sep="  ")
        else:
            print(f"{label:<21}{_text(value)}")
    if "level_sizes" in report:
        print(*histogram("vertices by level", bars(report["level_sizes"])), sep="\n")
    if "row_lengths" in report:
        print(*histogram("rows by length", report["row_lengths"]), sep="\n")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@contextlib.contextmanager
def waiting(what: str, visible: bool) -> Iterator[None]:
    """A line on stderr that counts the seconds of what has no steps to count."""
    done, how = threading.Event(), {"end": "", "file": sys.stderr, "flush": True}

    def count():
        start = time.perf_counter()
        while not done.wait(0.5):
            print(f"\r{what}: {time.perf_counter() - start:.0f} s", **how)
        print("\r\x1b[K", **how)

    counter = threading.Thread(target=count, daemon=True)
    if visible:
        counter.start()
    try:
        yield
    finally:
        done.set()
        if visible:
            counter.join()
