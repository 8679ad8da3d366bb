"""Reading and writing matrices: Matrix Market files, NumPy archives, the bundled graphs (host)."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.resources
import json
import os
import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy  # its modules are imported when they are first used

from .._core.eager.arrays import to_device
from .._core.indices import hypersparse
from .._core.pytree import in_tuples, is_concrete
from ..algebra.monoids import Monoid, plus
from ..construct.edges import in_dtype, narrow
from ..construct.from_arrays import from_edges, from_scipy
from ..formats import FORMATS, STRUCTURES, SparseMatrix
from ..formats.stored import Stored
from ..formats.tiled.bit_tiled import Words
from ..formats.vector import SparseVector
from ..interop.labels import symmetry
from .matrix_market import read_entries, read_header, summed
from .opening import existing, opened, refusing, written_whole

_HEADER = "jaxspv"  # the archive's member that holds everything but arrays
_VECTOR = "sparse_vector"
# Formats that SciPy has: their arrays of indices, and the axis whose extent stands in padding.
SCIPY = {"coo": {"row": 0, "col": 1}, "csr": {"indices": 1}, "csc": {"indices": 0}}


def read_mtx(
    path: str | os.PathLike[str],
    *,
    dtype: Any = None,
    dup: Monoid = plus,
    nse: int | None = None,
    format: str = "csr",
    progress: bool = False,
) -> Any:
    """A matrix from a Matrix Market file, `.mtx` or `.mtx.gz`.

    Symmetric, skew-symmetric and Hermitian files are expanded to both triangles. Stored zeros stay
    entries. Exponents may be written as in Fortran: `1.5D+02`.

    Args:
        path: the file, or the name of a bundled graph.
        dtype: of the values; by default float32 for real and pattern (ones) files, int32 for
            integer ones, complex64 for complex ones.
        dup: the monoid that combines entries at one place.
        nse: capacity; the number of entries by default.
        format: name of the format.
        progress: shows a bar on stderr.

    Raises:
        FileNotFoundError, IsADirectoryError: there is no such file.
        ValueError: the file is broken, `dtype` does not hold a value (300 in int8, 1.5 in int32,
            1e39 in float32), or the header claims more than the file can hold; names the file.

    >>> read_mtx("karate")
    CSR(float32[156], shape=(34, 34))
    """
    named = not os.path.exists(path) and str(path) in bundled_names()
    path = bundled(str(path)) if named else existing(path)
    with refusing(path, "Matrix Market file"):
        with opened(path, progress) as file:
            header = read_header(file)
            header.check(path, compressed=format != "coo")
            row, col, data = read_entries(file, header)
        shape = header.rows, header.cols
        if dup is plus:
            row, col, data = summed(row, col, data, shape, dtype)
        dtype = mtx_dtype(data, header.field) if dtype is None else dtype
        values = narrow(in_dtype("it holds", data, dtype))
    kept: dict[str, Any] = {"shape": shape, "nse": nse, "dup": dup, "format": format}
    # `return_slots` adds no spare slot, which only guards values in the order of the edges.
    return from_edges(row, col, values, **kept, return_slots=True)[0]


def write_mtx(
    path: str | os.PathLike[str], A: Any, *, comment: str = "", symmetry: str | None = None
) -> None:
    """Writes a matrix as a Matrix Market coordinate file, compressed where `path` ends in `.gz`.

    Values are written so that `read_mtx(path, dtype=A.dtype)` gives them back to the last bit.
    Booleans become integers 0 and 1.

    Args:
        path: `.mtx` or `.mtx.gz`.
        A: a matrix of jaxspv or SciPy.
        comment: put into the header.
        symmetry: "general", "symmetric" or "skew-symmetric"; None: found out, so that just the
            stored entries read back, zeros among them.

    Raises:
        ValueError: `path` has another suffix, A is traced, or it has no such symmetry.

    >>> import pathlib, tempfile
    >>> from jaxspv import from_dense
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.mtx"
    ...     write_mtx(path, from_dense([[0.0, 2.5]]))
    ...     read_mtx(path).todense().tolist()
    [[0.0, 2.5]]
    """
    path = pathlib.Path(path)
    if not path.name.endswith((".mtx", ".mtx.gz")):
        raise ValueError(f"`path` must end in .mtx or .mtx.gz; got {path}.")
    matrix = A.to_scipy() if isinstance(A, SparseMatrix) else A
    if len(getattr(matrix, "shape", ())) != 2:
        raise TypeError(f"`A` must be a matrix; got {type(A).__name__}.")
    coo = scipy.sparse.coo_array(matrix)
    if coo.dtype == bool:
        coo = coo.astype(np.int8)
    elif coo.dtype.kind not in "iufc" or coo.dtype.itemsize < 4 and coo.dtype.kind == "f":
        coo = coo.astype(np.float32)  # float16, bfloat16
    held = _symmetries_of(coo, to_the_bit=symmetry is None)
    symmetry = held[0] if symmetry is None else symmetry
    if symmetry not in held:
        raise ValueError(f"`symmetry` of this matrix must be one of {held}; got {symmetry!r}.")
    open_bytes = gzip.open if path.name.endswith(".gz") else open
    with written_whole(path) as name, open_bytes(name, "wb") as file:
        scipy.io.mmwrite(file, coo, comment=comment, symmetry=symmetry)


def save_npz(path: str | os.PathLike[str], A: Any, *, compressed: bool = True) -> None:
    """Writes a matrix of any format, or a SparseVector, field by field; `load_npz` reads it back.

    Capacity, padding, flags and dtype survive. `scipy.sparse.load_npz` takes a sorted COO, CSR or
    CSC, too, of a dtype that NumPy has.

    Raises:
        TypeError: A is neither.
        ValueError: `path` does not end in .npz, or A is traced.

    >>> import pathlib, tempfile
    >>> from jaxspv import from_dense
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.npz"
    ...     save_npz(path, from_dense([[0.0, 2.5]]))
    ...     load_npz(path).todense().tolist()
    [[0.0, 2.5]]
    """
    path = pathlib.Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"`path` must end in .npz; got {path}.")
    arrays: dict[str, np.ndarray] = {}
    header = _pack(A, "", arrays)
    if header["format"] in SCIPY and A.sorted and header["leaves"]["data"] == arrays["data"].dtype:
        count, data = int(A.count), arrays["data"]  # without padding, under SciPy's names
        arrays |= {name: arrays[name][:count] for name in ("data", *SCIPY[A.format])}
        arrays |= {"shape": np.array(A.shape), "format": np.array(A.format.encode())}
        arrays |= {"_is_array": np.array(True), "spare": data[count:]}
    write = np.savez_compressed if compressed else np.savez
    with written_whole(path) as name:
        write(name, allow_pickle=False, **{_HEADER: np.array(json.dumps(header))}, **arrays)


def load_npz(path: str | os.PathLike[str], *, format: str | None = None) -> Any:
    """What `save_npz` wrote; or a `scipy.sparse.save_npz` file, as CSR.

    Args:
        path: the file.
        format: convert a matrix to this format; None: as it was saved.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is broken, of another kind, needs x64, or holds a vector while `format`
            is given; names the file.

    >>> import pathlib, tempfile
    >>> from jaxspv import from_dense
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.npz"
    ...     save_npz(path, from_dense([[0.0, 2.5]]))
    ...     load_npz(path).todense().tolist()
    [[0.0, 2.5]]
    """
    path = existing(path)
    with refusing(path, "archive of a sparse matrix", (TypeError, AttributeError, IndexError)):
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as archive:
            if _HEADER in archive:
                header = json.loads(str(archive[_HEADER]))
                loaded = _unpack(header, archive)
                if "spare" in archive:
                    loaded = _with_spare(loaded, archive["spare"])
                loaded.check_invariants()
            elif "format" in archive and "shape" in archive:
                loaded = from_scipy(scipy.sparse.load_npz(path))
            else:
                raise ValueError("it was written neither by jaxspv nor by scipy.sparse.save_npz")
    if format is not None and not isinstance(loaded, SparseMatrix):
        raise ValueError(f"{path} holds a vector, no matrix: it has no format {format!r}.")
    return loaded if format is None else loaded.asformat(format)


def bundled_names() -> list[str]:
    """Names of the small real graphs that come with the package.

    >>> bundled_names()
    ['delaunay_n13', 'jazz', 'karate', 'minnesota']
    """
    return sorted(_bundled())


def bundled(name: str) -> pathlib.Path:
    """The file of a graph that comes with the package, for `read_mtx`.

    Raises:
        ValueError: there is none of that name.

    >>> bundled("karate").name
    'karate.mtx'
    """
    try:
        return _bundled()[name]
    except KeyError:
        known = ", ".join(bundled_names())
        raise ValueError(f"`name` must be one of {known}; got {name!r}.") from None


def _bundled() -> dict[str, pathlib.Path]:
    folder = pathlib.Path(str(importlib.resources.files("jaxspv"))) / "data"
    return {p.name.split(".")[0]: p for p in folder.iterdir() if ".mtx" in p.name}


def _symmetries_of(coo: Any, *, to_the_bit: bool) -> list[str]:
    """Which symmetries the stored entries and values have (for SciPy, zeros are absent); to the
    bit: 0.0 is not -0.0 then."""
    if hypersparse(max(coo.shape), coo.nnz):  # only the lines with entries
        known, place = np.unique(np.concatenate(coo.coords), return_inverse=True)
        ends = tuple(place.reshape(2, -1))
        coo = scipy.sparse.coo_array((coo.data, ends), (known.size, known.size))
    csr = coo.tocsr()
    csr.sum_duplicates()
    pattern, equal = symmetry(csr)
    if not pattern:
        return ["general"]
    on_diagonal = (coo.coords[0] == coo.coords[1]).any()
    data, other, kind = csr.data, csr.T.tocsr().data, csr.dtype.kind
    wraps = kind == "i" and ((data < 0) & (other < 0)).any()  # the least is its own opposite
    opposite = kind in "if" and np.array_equal(data, -other) and not wraps
    if to_the_bit:
        equal = equal and data.tobytes() == other.tobytes()
        opposite = opposite and data.tobytes() == (-other).tobytes()
    skew = ["skew-symmetric"] if opposite and not on_diagonal else []
    return [*(["symmetric"] if equal else []), *skew, "general"]


def mtx_dtype(values: np.ndarray, field: str) -> np.dtype:
    """The dtype that the values of a file have here, by the field of its header."""
    if "integer" not in field:  # integer, or unsigned-integer
        return np.dtype(np.complex64 if field == "complex" else np.float32)
    info = np.iinfo(np.int32)
    fits = values.size == 0 or (values.min() >= info.min and values.max() <= info.max)
    return np.dtype(np.int32) if fits else values.dtype


def _pack(node: Any, prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The header of a matrix or vector; its arrays go into `arrays` under `prefix` + field."""
    kind = next((name for name, cls in _kinds().items() if type(node) is cls), None)
    if kind is None:
        raise TypeError(f"`A` must be a sparse matrix or vector; got {type(node).__name__}.")
    if not is_concrete(node):
        raise ValueError("`A` holds traced values: save it outside of jit.")
    static, leaves, children = {}, {}, {}
    for field in dataclasses.fields(node):  # pyright: ignore[reportArgumentType]
        value = getattr(node, field.name)
        if field.metadata.get("transient"):
            continue
        if field.metadata.get("static"):
            static[field.name] = value
        elif value is None:
            leaves[field.name] = None
        elif isinstance(value, (Stored, Words)):
            children[field.name] = _pack(value, f"{prefix}{field.name}.", arrays)
        else:
            array = np.asarray(value)
            leaves[field.name] = array.dtype.name
            if array.dtype.kind == "V":  # NumPy has no bfloat16: its bits
                array = array.view(f"u{array.dtype.itemsize}")
            arrays[prefix + field.name] = array
    return {"format": kind, "static": static, "leaves": leaves, "children": children}


def _unpack(header: dict[str, Any], archive: Any, prefix: str = "") -> Any:
    kind = header["format"]
    kinds = _kinds()
    if kind not in kinds:
        raise ValueError(f"its format is {kind!r}, known are {sorted(kinds)}")
    fields = {name: in_tuples(value) for name, value in header["static"].items()}
    for name, dtype in header["leaves"].items():
        fields[name] = None
        if dtype is not None:
            array = archive[prefix + name]
            array = array if array.dtype.name == dtype else array.view(jnp.dtype(dtype))
            fields[name] = to_device(narrow(array))
    for name, child in header["children"].items():
        fields[name] = _unpack(child, archive, f"{prefix}{name}.")
    return kinds[kind](**fields)


def _kinds() -> dict[str, Any]:
    """The classes that archives hold, by name: formats, vectors, and what BitTiled is made of."""
    return {**FORMATS, **STRUCTURES, _VECTOR: SparseVector, "words": Words}


def _with_spare(A: Any, spare: Any) -> Any:
    """Adds the padding to a matrix that was read without it."""
    arrays = {
        name: np.pad(getattr(A, name), (0, spare.shape[0]), constant_values=A.shape[axis])
        for name, axis in SCIPY[A.format].items()
    }
    data = np.concatenate([A.data, narrow(spare)])
    return dataclasses.replace(A, **to_device(arrays | {"data": data}))
