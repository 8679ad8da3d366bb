"""Cases for jaxspv and SuiteSparse:GraphBLAS alike: random operands, options, comparison."""

import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from strategies import garbage

import jaxspv as jsp

gb = pytest.importorskip(
    "graphblas", reason="needs python-graphblas: python -m pip install 'jaxspv[graphblas]'"
)

CAPACITY = 16  # slots of every operand: one shape, so that compiled programs are used again
GB_TYPE = {
    "bool": "BOOL",
    "int8": "INT8",
    "uint8": "UINT8",
    "int32": "INT32",
    "int64": "INT64",
    "float32": "FP32",
    "float64": "FP64",
}


class Data(NamedTuple):
    """A matrix or vector as sorted places and values; `dense` vectors store every place."""

    places: np.ndarray  # (k, axes)
    values: np.ndarray  # (k,)
    shape: tuple
    dense: bool = False


def random_data(rng, shape, dtype, dense=False, fill=None):
    size = int(np.prod(shape))
    count = size if dense else int(rng.integers(0, min(CAPACITY, size) + 1))
    if fill is not None:
        count = min(fill, size)
    flat = np.sort(rng.permutation(size)[:count])
    places = np.stack(np.unravel_index(flat, shape), axis=-1).astype(np.int32)
    return Data(places, rng.integers(0, 4, count).astype(dtype), shape, dense)


def by_hand(data, repeated):
    """A CSR whose rows are not sorted, of entries in two parts where they are `repeated`."""
    rng, count = np.random.default_rng(len(data.values)), len(data.values)
    order, values = np.arange(count), data.values
    if repeated:
        first = rng.integers(0, 3, count).astype(values.dtype)
        first = values if values.dtype == bool else np.minimum(first, values)
        rest = values if values.dtype == bool else values - first
        order, values = np.r_[order, order], np.r_[first, rest]
    mixed = rng.permutation(len(values))
    row, col = data.places[order[mixed]].T
    by_row = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[by_row], np.arange(data.shape[0] + 1)).astype(np.int32)
    extra = CAPACITY * (1 + repeated) - len(values)
    values = np.r_[values[mixed][by_row], np.full(extra, garbage(values.dtype))]
    columns = np.r_[col[by_row], np.full(extra, data.shape[1])].astype(np.int32)
    arrays = map(jnp.asarray, (values, columns, indptr, False))
    return jsp.CSR(*arrays, data.shape, sorted=False, unique=not repeated)


def ours(data, format="csr"):
    """The operand of jaxspv, with garbage in its padding."""
    if data.dense:
        return jnp.asarray(data.values)
    if len(data.shape) == 2 and format in ("unsorted", "repeated"):
        return by_hand(data, format == "repeated")
    count = len(data.values)
    extra = CAPACITY - count
    values = jnp.asarray(np.r_[data.values, np.full(extra, garbage(data.values.dtype))])
    keys = [
        np.r_[data.places[:, axis], np.full(extra, extent)].astype(np.int32)
        for axis, extent in enumerate(data.shape)
    ]
    if len(data.shape) == 1:
        return jsp.SparseVector(
            values, jnp.asarray(keys[0]), jnp.int32(count), jnp.asarray(False), data.shape
        )
    if format == "csc":
        order = np.lexsort((keys[0], keys[1]))
        indptr = np.searchsorted(keys[1][order], np.arange(data.shape[1] + 1)).astype(np.int32)
        return jsp.CSC(
            values[order],
            jnp.asarray(keys[0][order]),
            jnp.asarray(indptr),
            jnp.asarray(False),
            data.shape,
        )
    if format == "coo":
        return jsp.COO(values, *map(jnp.asarray, keys), jnp.asarray(False), data.shape)
    indptr = np.searchsorted(keys[0], np.arange(data.shape[0] + 1)).astype(np.int32)
    return jsp.CSR(
        values, jnp.asarray(keys[1]), jnp.asarray(indptr), jnp.asarray(False), data.shape
    )


def theirs(data):
    """The operand of python-graphblas."""
    dtype = GB_TYPE[data.values.dtype.name]
    if len(data.shape) == 1:
        return gb.Vector.from_coo(data.places[:, 0], data.values, dtype=dtype, size=data.shape[0])
    rows, cols = data.places.T
    return gb.Matrix.from_coo(
        rows, cols, data.values, dtype=dtype, nrows=data.shape[0], ncols=data.shape[1]
    )


def listed(result):
    """(places, values) of a result of either library."""
    if isinstance(result, gb.Matrix):
        rows, cols, values = result.to_coo()
        order = np.lexsort((cols, rows))
        return np.stack([rows, cols], -1)[order], values[order]
    if isinstance(result, gb.Vector):
        places, values = result.to_coo()
        return places[:, None], values
    count = int(result.count)
    if isinstance(result, jsp.SparseVector):
        return np.asarray(result.indices)[:count, None], np.asarray(result.data)[:count]
    rows, cols = slots(result)
    rows, cols, values = rows[:count], cols[:count], np.asarray(result.data)[:count]
    order = np.lexsort((cols, rows))
    return np.stack([rows, cols], -1)[order], values[order]


def slots(result):
    """(rows, columns) of a matrix of ours, read from its arrays as their definition says."""
    if isinstance(result, jsp.COO):
        return np.asarray(result.row), np.asarray(result.col)
    lengths = np.diff(np.asarray(result.indptr))
    major, minor = np.repeat(np.arange(len(lengths)), lengths), np.asarray(result.indices)
    return (major, minor) if isinstance(result, jsp.CSR) else (minor, major)


def compare(got, want, fill=0):
    """Equal in structure and value; a dense result holds `fill` where nothing is stored."""
    if isinstance(want, gb.Scalar) or np.ndim(got) == 0 and not hasattr(got, "shape"):
        np.testing.assert_allclose(np.asarray(got), want.value, rtol=1e-6)
        return
    places, values = listed(want)
    if not isinstance(got, (jsp.SparseVector, jsp.formats.SparseMatrix)):
        dense = np.full(got.shape, fill, np.asarray(got).dtype)
        dense[places[:, 0]] = values
        np.testing.assert_allclose(np.asarray(got), dense, rtol=1e-6)
        return
    assert not bool(got.overflow)
    assert got.shape == want.shape
    found, data = listed(got)
    np.testing.assert_array_equal(found, places)
    np.testing.assert_allclose(data, values, rtol=1e-6)


class Combination(NamedTuple):
    """One way to call an operation."""

    mask: str | None = None  # "value", "structure", "array"
    complement: bool = False
    accum: str | None = None
    replace: bool = False
    out: bool = True


MASKS = [(None, False), *itertools.product(("value", "structure", "array"), (False, True))]
COMBINATIONS = [
    Combination(mask, complement, accum, replace)
    for (mask, complement), accum, replace in itertools.product(
        MASKS, (None, "plus", "minus"), (False, True)
    )
    if mask is not None or not replace  # GraphBLAS: without a mask there is nothing to replace
] + [Combination(mask, complement, out=False) for mask, complement in MASKS]
ACCUM = {"bool": {"plus": "lor", "minus": "lxor"}}  # of a result of booleans


def accum_name(accum, dtype):
    return ACCUM.get(np.dtype(dtype).name, {}).get(accum, accum)


def our_options(combination, out, mask, format):
    """Keyword arguments of an operation of jaxspv."""
    options = {}
    if combination.mask == "array":
        dense = np.zeros(mask.shape, bool)
        dense[tuple(mask.places.T)] = mask.values != 0
        options["mask"] = jsp.Mask(jnp.asarray(dense))
    elif combination.mask is not None:
        source = ours(mask, format)
        options["mask"] = (
            jsp.structure(source) if combination.mask == "structure" else jsp.Mask(source)
        )
    if combination.complement:
        options["mask"] = ~options["mask"]
    if combination.out:
        options["out"] = ours(out, format)
        options["replace"] = combination.replace
        if combination.accum:
            name = accum_name(combination.accum, out.values.dtype)
            options["accum"] = getattr(jsp.operators, name)
    return options


def their_options(combination, out, mask):
    """Keyword arguments of `C(...)` in python-graphblas."""
    options = {}
    if combination.mask is not None:
        source = theirs(mask)
        options["mask"] = source.S if combination.mask == "structure" else source.V
        if combination.complement:
            options["mask"] = ~options["mask"]
    if combination.out:
        if combination.replace:
            options["replace"] = True
        if combination.accum:
            name = accum_name(combination.accum, out.values.dtype)
            options["accum"] = getattr(gb.binary, name)
    return options


def reference(row, operands, out, mask, combination):
    """The result of python-graphblas."""
    x = [theirs(data) for data in operands]
    options = their_options(combination, out, mask)
    if row.assigns:
        C = theirs(out)
        row.theirs(C, options, x)
        return C
    expression = row.theirs(x)
    if not row.shape:
        return expression.new()
    if not combination.out:
        return (
            expression.new(**options) if hasattr(expression, "new") else expression.dup(**options)
        )
    C = theirs(out)
    C(**options) << expression
    return C
