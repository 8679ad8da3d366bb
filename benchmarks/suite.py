"""Workloads by name: the graphs of the data folder by file, synthetic ones by generator and size.

`get("coAuthorsDBLP")` reads a Matrix Market file; `get("rmat18")`, `get("delaunay21")` and
`get("grid1000")` generate. Nothing is read or generated before `Workload.matrix()` is called; what
takes long is kept in a cache folder.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import os
import pathlib
import re
from collections.abc import Callable, Sequence

import jax
import numpy as np
import scipy.io
import scipy.sparse as sp
import scipy.spatial

import jaxspv as jsp

from . import tile_suite

HERE = pathlib.Path(__file__).resolve().parent
PEERS = (
    "rmat18",
    "rmat21",
    "delaunay21",
    "grid1000",
    "coAuthorsDBLP",
    "luxembourg_osm",
    "moscow-roads",
)
SMALL = ("rmat8", "rmat10", "grid12", "delaunay7")  # also test problems; no file is needed
QUICK = ("rmat12", "grid60", "delaunay12")
LARGE_ENTRIES = 50_000  # "data" stands for the square graphs of the data folder with more
RMAT_EDGE_FACTOR = 44
LENGTHS = "+lengths"
FILES = (".mtx", ".mtx.gz", ".npz")
GENERATED = re.compile(r"(rmat|grid|delaunay)(\d+)")


def data_folder() -> pathlib.Path:
    """The folder of graph files: JAXSPV_DATA, or shared/data beside the repository."""
    default = HERE.parent.parent / "shared" / "data"
    return pathlib.Path(os.environ.get("JAXSPV_DATA", default))


def cache_folder() -> pathlib.Path:
    """Where slow ones are kept: JAXSPV_CACHE, or .cache beside this file (not in git)."""
    return pathlib.Path(os.environ.get("JAXSPV_CACHE", HERE / ".cache"))


@dataclasses.dataclass(frozen=True)
class Workload:
    """A square matrix by name, A[i, j] the edge i -> j.

    Attributes:
        name: as in tables.
        build: makes the matrix; called once.
        origin: where it comes from.
        source: start of traversals; None: the vertex of largest out-degree, the first at ties.
        cached: whether `build` is slow enough to keep its result on disk.
        lengths: whether `weighted` takes the values of the file.
    """

    name: str
    build: Callable[[], sp.csr_array]
    origin: str
    source: int | None = None
    cached: bool = False
    lengths: bool = False

    @functools.cache  # noqa: B019 - workloads live as long as the process
    def matrix(self) -> sp.csr_array:
        """The matrix as float32 CSR, rows sorted, no duplicates, self loops as stored."""
        path = cache_folder() / f"{self.name}.npz"
        if self.cached and path.exists():
            return _arrays(sp.load_npz(path))
        matrix = _arrays(self.build())
        if self.cached:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}.npz")
            sp.save_npz(partial, matrix, compressed=False)
            partial.replace(path)
        return matrix

    def start(self) -> int:
        """The source of a traversal."""
        if self.source is not None:
            return self.source
        return int(np.argmax(np.diff(self.matrix().indptr)))

    def symmetrised(self) -> Workload:
        """The pattern of A and of its transpose together, without self loops."""
        return Workload(
            f"{self.name}+T",
            lambda: _symmetrise(self.matrix()),
            f"{self.origin}, symmetrised",
            self.source,
        )

    def weighted(self) -> sp.csr_array:
        """The matrix with the integer weights `weights(i, j)` in 1..64, as float32."""
        matrix = self.matrix()
        if self.lengths:
            return matrix
        data = np.empty(matrix.nnz, np.float32)
        rows, degree = matrix.shape[0], np.diff(matrix.indptr)
        step = max(1, rows // 64)  # the 64-bit temporaries of a slice, not of the whole
        for first in range(0, rows, step):
            last = min(rows, first + step)
            slots = slice(matrix.indptr[first], matrix.indptr[last])
            i = np.repeat(np.arange(first, last), degree[first:last])
            data[slots] = weights(i, matrix.indices[slots])
        return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def weights(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """`w(i, j) = (min(i, j) * 2654435761 + max(i, j) * 40503) mod 64 + 1` in 64-bit integers."""
    low, high = np.minimum(i, j).astype(np.int64), np.maximum(i, j).astype(np.int64)
    return (low * 2654435761 + high * 40503) % 64 + 1


def get(name: str) -> Workload:
    """The workload of that name.

    Raises:
        ValueError: no generator and no file of the data folder has it.
    """
    if name.endswith(LENGTHS):
        base = get(name.removesuffix(LENGTHS))
        return dataclasses.replace(base, name=name, origin=f"{base.origin}, values", lengths=True)
    match = GENERATED.fullmatch(name)
    if match:
        return _generated(name, match[1], int(match[2]))
    if name in tile_suite.NAMES:
        tiled = tile_suite.NAMES[name]
        return Workload(name, lambda: tiled.build().to_scipy(), tiled.origin(), source=0)
    for suffix in FILES:
        path = data_folder() / f"{name}{suffix}"
        if path.exists():
            return Workload(name, functools.partial(_read, path), path.name)
    raise ValueError(
        f"`name` must be rmat<scale>, grid<side>, delaunay<scale>, one of tile_suite.py "
        f"({', '.join(tile_suite.NAMES)}) or a file of {data_folder()} "
        f"({', '.join(files()) or 'which holds none'}); got {name!r}."
    )


def exists(name: str) -> bool:
    """Whether `get` would find it."""
    return GENERATED.fullmatch(name) is not None or name in {*tile_suite.NAMES, *files()}


def select(names: Sequence[str]) -> list[Workload]:
    """Workloads by names; "peers", "data", "quick" and "small", "tiles" stand for groups."""
    tiles = tuple(w.name for w in tile_suite.ALL)
    groups = {"peers": PEERS, "quick": QUICK, "small": SMALL, "tiles": tiles}
    listed = []
    for name in names:
        listed += large_files() if name == "data" else groups.get(name, (name,))
    return [get(name) for name in dict.fromkeys(listed)]


def files() -> list[str]:
    """Names of the graph files in the data folder."""
    folder = data_folder()
    found = folder.iterdir() if folder.is_dir() else ()
    names = {p.name.removesuffix(s) for p in found for s in FILES if p.name.endswith(s)}
    return sorted(names)


def large_files() -> list[str]:
    """The square ones with more than 50,000 entries, by the manifest or by the files themselves."""
    manifest = data_folder() / "MANIFEST.csv"
    if manifest.exists():
        with manifest.open() as file:
            return [
                row["file"].split(".mtx")[0]
                for row in csv.DictReader(file)
                if row["rows"] == row["cols"] and int(row["nnz_expanded"]) > LARGE_ENTRIES
            ]
    shapes = {name: get(name).matrix() for name in files()}
    return [k for k, a in shapes.items() if a.shape[0] == a.shape[1] and a.nnz > LARGE_ENTRIES]


def _read(path: pathlib.Path) -> sp.csr_array:
    return sp.load_npz(path) if path.suffix == ".npz" else scipy.io.mmread(path, spmatrix=False)


def _arrays(matrix: sp.spmatrix | sp.sparray) -> sp.csr_array:
    csr = sp.csr_array(matrix)
    csr.sum_duplicates()
    if csr.dtype != np.float32:
        csr = csr.astype(np.float32)
    if csr.indices.dtype != np.int32:
        csr.indices, csr.indptr = csr.indices.astype(np.int32), csr.indptr.astype(np.int32)
    return csr


def _symmetrise(matrix: sp.csr_array) -> sp.csr_array:
    coo = matrix.tocoo()
    return _undirected(coo.row, coo.col, matrix.shape[0])


def _undirected(head: np.ndarray, tail: np.ndarray, n: int) -> sp.csr_array:
    """Both directions of every edge once, without self loops, value 1."""
    proper = head != tail
    head, tail = head[proper], tail[proper]
    pattern = sp.coo_array((np.ones(len(head), bool), (head, tail)), shape=(n, n)).tocsr()
    return sp.csr_array(pattern + pattern.T).astype(np.float32)


def _generated(name: str, kind: str, size: int) -> Workload:
    if kind == "rmat":
        origin = f"R-MAT scale {size}, edge factor {RMAT_EDGE_FACTOR}, Graph500 parameters, seed 0"
        return Workload(name, functools.partial(_rmat, size), origin, cached=size >= 16)
    if kind == "grid":
        origin = f"{size} x {size} grid, 10% of the edges removed, seed 0"
        return Workload(name, functools.partial(_grid, size), origin, source=0)
    origin = f"Delaunay triangulation of 2^{size} uniform points, seed 0"
    return Workload(name, functools.partial(_delaunay, size), origin, cached=size >= 16)


def _rmat(scale: int) -> sp.csr_array:
    graph = jsp.generators.rmat(jax.random.key(0), scale, RMAT_EDGE_FACTOR)
    arrays = map(np.asarray, (graph.data, graph.indices, graph.indptr))
    return sp.csr_array(tuple(arrays), shape=graph.shape)


def _grid(side: int) -> sp.csr_array:
    """NumPy's draws, so that the graph is that of the published times."""
    vertex = np.arange(side * side, dtype=np.int32).reshape(side, side)
    head = np.concatenate([vertex[:, :-1].ravel(), vertex[:-1].ravel()])
    tail = np.concatenate([vertex[:, 1:].ravel(), vertex[1:].ravel()])
    keep = np.random.default_rng(0).random(len(head)) > 0.1
    return _undirected(head[keep], tail[keep], side * side)


def _delaunay(scale: int) -> sp.csr_array:
    """float64 points of NumPy, as above."""
    points = np.random.default_rng(0).random((1 << scale, 2))
    corners = scipy.spatial.Delaunay(points).simplices.astype(np.int32)
    return _undirected(corners.T.ravel(), np.roll(corners, -1, axis=1).T.ravel(), 1 << scale)
