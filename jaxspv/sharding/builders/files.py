"""`shard_file`: a sharded graph from a file of which each process reads a part."""

from __future__ import annotations

import functools
import io
import itertools
import os
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ...algebra.monoids import Monoid, plus
from ...construct.edges import in_dtype, narrow
from ...io.files import mtx_dtype
from ...io.matrix_market import LONGEST_LINE, Header, opposite, parsed, read_header
from ...io.opening import existing, opened, refusing
from ...io.tables.frames import values_of
from ...io.tables.lines import Text, blocks, check_delimiter, kept, weight_kind
from ..graph import ShardedGraph
from .edges import Agreed, LocalEdges, sharded

if TYPE_CHECKING:
    from jax.sharding import Mesh, PartitionSpec

BLOCK = 2**24  # bytes of one read of a process


def shard_file(
    path: str | os.PathLike[str],
    *,
    mesh: Mesh,
    spec: PartitionSpec | None = None,
    n: int | None = None,
    source: int = 0,
    target: int = 1,
    weight: int | None = None,
    delimiter: str | None = None,
    comments: str = "#%",
    directed: bool = True,
    symmetric: bool | None = None,
    dtype: Any = None,
    dup: Monoid = plus,
    nse: int | None = None,
) -> ShardedGraph:
    """A sharded graph from a file, whose blocks of lines go to the processes round robin; eager.

    No process parses the lines of another. In a compressed file a process must read all bytes
    before its blocks; in any other it seeks.

    Args:
        path: `.mtx` (Matrix Market, coordinates), else text with an edge a line, as `read_edgelist`
            takes; `.gz` or not. All processes see the same file.
        mesh, spec: as in `shard`.
        n: number of vertices; None: as the header says, or one more than the largest there is.
        source, target, weight, delimiter, comments, directed: of a text, as in `read_edgelist`,
            with columns by number. The first line is a header if it holds words alone.
        symmetric: declares that the pattern is symmetric; None: it is where `directed` is False or
            the header of a `.mtx` says so.
        dtype: of the values; None: as `read_mtx`, of a text float32.
        dup, nse: as in `shard_edges`.

    Raises:
        FileNotFoundError, IsADirectoryError: there is no such file.
        ValueError: a line is wrong, the header of a `.mtx` says another number of entries than
            there are, a matrix that is not square, or a sum of integers at one place that `dtype`
            does not hold; as `shard_edges`. In all processes where it is so in one.

    Cost: O(bytes / processes) to parse; that of `shard_edges`.

    >>> import jax, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> G = jsp.sharding.shard_file(jsp.bundled("karate"), mesh=mesh)
    >>> G.n, int(jsp.triangle_count(G).count)
    (34, 45)
    """
    path = existing(path)
    if str(path).endswith((".mtx", ".mtx.gz")):
        with refusing(path, "Matrix Market file"):
            header, start = _mtx_header(path)
        size = header.rows if n is None else n
        own = functools.partial(_local_mtx, path, header, start, dtype)
        known = header.symmetry != "general" if symmetric is None else symmetric
        check = functools.partial(_all_valid, path, header)
        both = header.symmetry in ("symmetric", "hermitian")
        return sharded(own, (mesh, spec), size, not both, known, dup, nse, check)
    check_delimiter(delimiter)
    columns = (source, target, weight)
    text = Text(columns, False, None if n is None else (n, n), delimiter, None, weight_kind(dtype))
    own = functools.partial(_local_lines, path, text, comments, dtype)
    return sharded(own, (mesh, spec), n, directed, symmetric, dup, nse)


def local_blocks(path: pathlib.Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Whole lines of this process, and at which byte they begin: those that begin in its blocks of
    bytes from `start` on."""
    part, parts = jax.process_index(), jax.process_count()
    with opened(path, progress=False) as file:
        file.seek(start)
        for number in itertools.count(part, parts):
            first = start + number * BLOCK
            if file.tell() < first:  # else the block before this one was ours, and ended a line
                file.seek(first - 1)
                file.readline()
            here, end = file.tell(), first + BLOCK
            if here >= end:  # within one line
                continue
            lines = file.read(end - here)
            if not lines:
                return
            yield here, lines if lines.endswith(b"\n") else lines + file.readline()


# ---- Matrix Market ----


def _mtx_header(path: pathlib.Path) -> tuple[Header, int]:
    """The header, and where the entries begin."""
    with opened(path, progress=False) as file:
        header, start = read_header(file), file.tell()
    header.check(path, compressed=True)
    if header.layout != "coordinate" or header.field == "complex":
        raise ValueError(f"it holds {header.field} values as {header.layout}; wanted: coordinates")
    if header.rows != header.cols:
        raise ValueError(f"a graph is square; it is {header.rows} by {header.cols}")
    return header, start


def _local_mtx(path: pathlib.Path, header: Header, start: int, dtype: Any) -> LocalEdges:
    """The entries of the lines of this process, those of skew-symmetric files twice."""
    parts = [parsed(b"", header, 0)]
    with refusing(path, "Matrix Market file"):
        for first, block in local_blocks(path, start):
            try:
                parts.append(parsed(block, header, 1))
            except ValueError as error:
                raise ValueError(f"from byte {first} on: {error}") from error
        row, col, data = map(np.concatenate, zip(*parts, strict=True))
        if header.symmetry == "skew-symmetric":
            row, col, data = np.r_[row, col], np.r_[col, row], np.r_[data, opposite(data)]
        dtype = mtx_dtype(data, header.field) if dtype is None else dtype
        return LocalEdges(row, col, narrow(in_dtype("it holds", data, dtype)), True)


def _all_valid(path: pathlib.Path, header: Header, agreed: Agreed) -> None:
    wanted = header.entries * (2 if header.symmetry == "skew-symmetric" else 1)
    if agreed.total != wanted:
        raise ValueError(
            f"{path} is no readable Matrix Market file: its header claims {wanted} entries; it has "
            f"{agreed.total}"
        )


# ---- Text ----


def _local_lines(path: pathlib.Path, text: Text, comments: str, dtype: Any) -> LocalEdges:
    """The edges of the lines of this process."""
    parts: list[Any] = []
    with refusing(path, "list of edges"):
        for first, block in local_blocks(path, _after_header(path, text, comments)):
            file = io.StringIO(block.decode("utf-8-sig"), newline=None)
            for number, part in blocks(file):
                try:
                    parts.append(text.edges(*kept(number, part, comments)))
                except ValueError as error:
                    raise ValueError(f"from byte {first} on: {error}") from error
        none = np.zeros(0, np.int64)
        row, col, *rest = map(np.concatenate, zip(*parts, strict=True)) if parts else (none, none)
        return LocalEdges(row, col, values_of(rest[0] if rest else None, row.size, dtype), True)


def _after_header(path: pathlib.Path, text: Text, comments: str) -> int:
    """Where the lines with edges, or comments before them, begin; sets what `text` must know."""
    with opened(path, progress=False) as file:
        for number in itertools.count(1):
            line = file.readline(LONGEST_LINE)
            if not line:
                return 0
            _, lines = kept(number, line.decode("utf-8-sig").rstrip(), comments)
            if lines:
                return file.tell() if text.look(lines[0], number) else 0
    return 0
