"""Operations on matrices and vectors of tuples: places by numbers, values by gathers and scans.

Each takes what the public function of its name takes; `overloadable` comes here when an operand is
a `Tuples`, or the semiring or monoid is one of tuples. Which entries a result has is computed by
the operation on numbers; the values are gathered, joined by the user's functions mapped over them,
and reduced in the order of the entries.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from .._core.compilation import is_eager
from .._core.operation import Operation
from .._core.operations.overload import ON_TUPLES
from .._core.operations.tuples import Each, choose, is_tuple, joined, multiplied, ones_unless, take
from .._core.pytree import is_concrete
from ..algebra.masks import check_mask
from ..algebra.monoids import Monoid, as_monoid
from ..algebra.operators import BinaryOp, IndexUnaryOp, UnaryOp, as_binary
from ..formats import COO, BitTiled
from ..formats.stored import Stored
from ..formats.tuples import Tuples
from ..formats.vector import from_present
from ..graph import Graph, kind, linked
from . import apply as _apply
from . import assign as _assign
from . import ewise as _ewise
from . import extract as _extract
from .products.common.expand import edge_slots, select_runs
from .write_rule.call import Options
from .write_rule.write import as_accum

MOST_PRODUCTS = 1 << 26  # of a product of two traced matrices


def on_tuples(fn: Any) -> Any:
    """Decorator: what the public function of this name does on tuples."""
    ON_TUPLES[fn.__name__] = fn
    return fn


def as_tuples(name: str, A: Any) -> Tuples:
    """A matrix or sparse vector, or that of a Graph, with its values by number.

    Raises:
        TypeError: it is none.
    """
    A = linked(A).out if isinstance(A, Graph) else A
    if isinstance(A, Tuples):
        return A
    if not isinstance(A, Stored):
        raise TypeError(f"`{name}` must be sparse, on one device; got {kind(A)}.")
    A = A.asformat("csr") if isinstance(A, BitTiled) else A
    return Tuples.of(A, A.data)


def is_sparse(x: Any) -> bool:
    """Whether it is a matrix or vector of this library, of tuples or not."""
    return isinstance(x, (Tuples, Stored, Graph))


# ---- Products ----

product = Operation("product of tuples", "definition")
reduction = Operation("reduction of tuples", "definition")


@product.register("segments")
def _product(semiring: Any, A: Tuples, x: Any, hit: Any, *, flip: bool) -> Any:
    """y (m, ...) of dense x (n, ...); hit: (n,) bool, the elements of x that are there, or None."""
    coo = A.places.to_coo()
    valid = coo.row < coo.shape[0]
    if hit is not None:
        valid &= take(hit, coo.col)
    a, v = (ones_unless(valid, take(*p)) for p in ((A.values, coo.data), (x, coo.col)))
    terms = multiplied(semiring, *((v, a) if flip else (a, v)))
    rows = jnp.where(valid, coo.row, coo.shape[0])
    return semiring.add.segment_reduce(terms, rows, coo.shape[0], sorted=hit is None)


@reduction.register("scan")
def _reduction(add: Any, A: Tuples, *, axis: int | None) -> Any:
    if A.places.ndim == 1:
        valid, terms = A.valid(), A.data
        return add.reduce(choose(valid, terms, add.like(terms)), 0)
    coo = (A.T if axis == 0 else A).places.to_coo()
    terms = take(A.values, coo.data)
    if axis is None:
        return add.reduce(choose(coo.row < coo.shape[0], terms, add.like(terms)), 0)
    return add.segment_reduce(terms, coo.row, coo.shape[0], sorted=True)


def _dense(x: Any, n: int, name: str) -> Any:
    x = jax.tree.map(jnp.asarray, x)
    if wrong := [v.shape for v in jax.tree.leaves(x) if v.shape[:1] != (n,)]:
        raise ValueError(f"`{name}` must have leaves of shape ({n}, ...); got {wrong}.")
    return x


def _multiply(A, x, semiring, options: Options, *, flip: bool) -> Any:
    A = as_tuples("A", A)
    A = A.T if flip else A
    m, n = A.shape
    if not is_sparse(x):
        y = product(semiring, A, _dense(x, n, "x"), None, flip=flip)
        return _written_dense(y, A, semiring.add.like(y), options)
    x = as_tuples("x", x)
    if x.shape != (n,):
        raise ValueError(f"`x` must have shape ({n},); got {x.shape}.")
    hit = x.places.structure()
    y = product(semiring, A, take(x.values, x.places.todense(0)), hit, flip=flip)
    rows, cols = A.places.rowcol()
    present = jnp.zeros(m, bool).at[jnp.where(take(hit, cols), rows, m)].set(True, mode="drop")
    return write(_present(y, present, x), options)


def _present(y: Any, present: Array, like: Any = None) -> Tuples:
    """The elements that are there, numbered by their places."""
    v = from_present(jnp.arange(present.shape[0], dtype=jnp.int32), present)
    overflow = v.overflow if like is None else v.overflow | like.overflow
    return Tuples(dataclasses.replace(v, overflow=overflow), y)


@on_tuples
def mxv(A, x, semiring, *, method="auto", backend=None, **options):
    """`mxv` over a semiring of tuples: x a pytree of arrays (n, ...), or a sparse vector."""
    return _multiply(A, x, semiring, Options(**options), flip=False)


@on_tuples
def vxm(x, A, semiring, *, method="auto", backend=None, **options):
    """`vxm` over a semiring of tuples."""
    return _multiply(A, x, semiring, Options(**options), flip=True)


@on_tuples
def mxm(A, B, semiring, *, method="auto", chunk=None, backend=None, nse=None, **options):
    """`mxm` over a semiring of tuples; `chunk` is the capacity for products of traced patterns."""
    if not (is_sparse(A) and is_sparse(B)):
        return _with_columns(A, B, semiring, Options(**options))
    A, B = as_tuples("A", A), as_tuples("B", B)
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"shapes {A.shape} and {B.shape} do not match.")
    a, b = A.places.to_coo(), B.places.asformat("csr")
    if is_concrete(a, b):
        with jax.ensure_compile_time_eval():
            runs = select_runs(b.indptr, a.col, a.count)
            size = int(runs.total) if chunk is None else chunk
    else:
        size = min(a.nse * B.shape[1], a.nse * b.nse) if chunk is None else chunk
        if size > MOST_PRODUCTS:
            raise ValueError("patterns are traced: give `chunk`, a bound on the products.")
    A, B = (dataclasses.replace(t, places=p) for t, p in ((A, a), (B, b)))
    C = _expanded(semiring, A, B, size=max(size, 1))
    C = C.trim() if is_eager(C) and nse is None else C
    return write(C.asformat("csr"), Options(nse=nse, **options))


@functools.partial(jax.jit, static_argnames="size")
def _expanded(semiring: Any, A: Tuples, B: Tuples, *, size: int) -> Tuples:
    """The product as a COO: all pairs, sorted by place, k ascending in each, and reduced."""
    a, b = A.places, B.places
    m, n = a.shape[0], b.shape[1]
    runs = select_runs(b.indptr, a.col, a.count)
    slot, entry, valid = edge_slots(runs, jnp.int32(0), size)
    row = jnp.where(valid, take(a.row, entry), m)
    col = jnp.where(valid, take(b.indices, slot), n)
    row, col, order = lax.sort((row, col, jnp.arange(size)), num_keys=2, is_stable=True)
    valid, entry, slot = valid[order], entry[order], slot[order]
    x = take(A.values, take(a.data, entry))
    y = take(B.values, take(b.data, slot))
    terms = multiplied(semiring, ones_unless(valid, x), ones_unless(valid, y))
    new = jnp.append(True, (row[1:] != row[:-1]) | (col[1:] != col[:-1])) & valid
    group = jnp.where(valid, jnp.cumsum(new, dtype=jnp.int32) - 1, size)
    values = semiring.add.segment_reduce(terms, group, size, sorted=True)
    at = jnp.where(new, group, size)
    rows, cols = (jnp.full(size, e, jnp.int32).at[at].set(v, mode="drop")
                  for e, v in ((m, row), (n, col)))  # fmt: skip
    numbers = jnp.arange(size, dtype=jnp.int32)
    overflow = jnp.asarray(a.overflow) | b.overflow | (runs.total > size)
    return Tuples(COO(numbers, rows, cols, overflow, (m, n)), values)


def _with_columns(A, B, semiring, options: Options) -> Any:
    flip = not is_sparse(A)
    M = as_tuples("A", B if flip else A)
    M, X = (M.T, A) if flip else (M, B)
    axis = 0 if flip else 1
    X = jax.tree.map(lambda v: jnp.moveaxis(jnp.asarray(v), axis, 0), X)
    Y = jax.vmap(lambda x: product(semiring, M, _dense(x, M.shape[1], "B"), None, flip=flip))(X)
    if options.mask is not None or options.out is not None:
        Y = jax.vmap(lambda y: _written_dense(y, M, semiring.add.like(y), options))(Y)
    return jax.tree.map(lambda v: jnp.moveaxis(v, 0, axis), Y)


# ---- The write rule ----


def _written_dense(y: Any, A: Tuples, fill: Any, options: Options) -> Any:
    mask, accum, out = check_mask(options.mask, A.shape[:1]), options.accum, options.out
    if out is not None and accum is not None:
        present = jnp.zeros(A.shape[0], bool).at[A.places.rowcol()[0]].set(True, mode="drop")
        y = choose(present, Each(as_accum(accum))(out, y), out)
    if mask is None:
        return y
    return choose(mask.allowed(), y, fill if out is None or options.replace else out)


def write(T: Tuples, options: Options) -> Tuples:
    """The write rule `C<M, replace> = C accum T` of sparse tuples."""
    out, rest = options.out, {"mask": options.mask, "nse": options.nse}
    if out is not None and options.accum is not None:
        T = ewise_add(out, T, as_accum(options.accum))
    if out is None:
        if options.mask is None and options.nse is None:
            return T
        return Tuples(_apply.apply(T.places, UnaryOp(_itself), **rest), T.values)
    both, places = _behind(as_tuples("out", out), T)
    rest |= {"out": as_tuples("out", out).places, "replace": options.replace}
    return Tuples(_apply.apply(places, UnaryOp(_itself), **rest), both)


def _itself(number):
    return number


def _behind(C: Tuples, T: Tuples) -> tuple[Any, Any]:
    """The values of both, and the places of T with numbers behind those of C."""
    before = jax.tree.leaves(C.values)[0].shape[0]
    both = jax.tree.map(lambda c, t: jnp.concatenate([c, t.astype(c.dtype)]), C.values, T.values)
    return both, dataclasses.replace(T.places, data=T.places.data + before)


# ---- Element by element ----


def _numbers(A: Any, name: str) -> tuple[Any, Any]:
    """Places with numbers, and values: of a dense vector all of them."""
    if is_sparse(A) or hasattr(A, "unshard"):
        A = as_tuples(name, A)
        return A.places, A.values
    A = jax.tree.map(jnp.asarray, A)
    return jnp.arange(jax.tree.leaves(A)[0].shape[0], dtype=jnp.int32), A


_LEFT = BinaryOp(lambda x, y: x, "left")
_RIGHT = BinaryOp(lambda x, y: y, "right")


def _joined(function, A, B, op, options: Options, default: Any = None, *defaults) -> Any:
    """What a function of places finds, and the op where both have an entry, or with defaults."""
    op = op.op if isinstance(op, Monoid) else as_binary(op)
    op = functools.partial(joined, f"`{op.name}`", op)
    (a, x), (b, y) = _numbers(A, "A"), _numbers(B, "B")
    left, right = (function(a, b, pick, *defaults) for pick in (_LEFT, _RIGHT))
    sparse = isinstance(left, Stored)
    p, q = (v.data if sparse else v for v in (left, right))
    one, other = take(x, p), take(y, q)
    if default is not None:
        one, other = choose(p >= 0, one, default[0]), choose(q >= 0, other, default[1])
        z = op(one, other)
    else:
        both = (p >= 0) & (q >= 0)
        z = op(ones_unless(both, one), ones_unless(both, other))
        z = choose(both, z, choose(p >= 0, one, other)) if defaults else z
    if not sparse:
        return z
    deep = is_tuple(z) or jax.tree.leaves(z)[0].ndim > 1
    return _written(Tuples.of(left, z) if deep else left.with_data(z), options)


def _written(T: Any, options: Options) -> Any:
    """The write rule of entries that may have become numbers."""
    if isinstance(T, Tuples):
        return write(T, options)
    if not options.writes and options.nse is None:
        return T
    return _apply.apply(T, UnaryOp(_itself), **dataclasses.asdict(options))


@on_tuples
def ewise_add(A, B, op, **options):
    """`ewise_add` of tuples: `op` of two values, which gives one of the same kind."""
    return _joined(_ewise.ewise_union, A, B, op, Options(**options), None, -1, -1)


@on_tuples
def ewise_union(A, B, op, left_default, right_default, **options):
    """`ewise_union` of tuples; the defaults are values."""
    defaults = left_default, right_default
    return _joined(_ewise.ewise_union, A, B, op, Options(**options), defaults, -1, -1)


@on_tuples
def ewise_mult(A, B, op, **options):
    """`ewise_mult` of tuples: `op` of two values of any kinds."""
    return _joined(_ewise.ewise_mult, A, B, op, Options(**options))


def _keys(A: Tuples) -> tuple[Array, Array]:
    if A.places.ndim == 2:
        return A.places.rowcol()
    return A.places.indices, jnp.zeros_like(A.places.indices)


@on_tuples
def apply(A, op, *, left=None, right=None, thunk=0, **options):
    """`apply` to tuples: `op` of one value, of `left` and it, or of it, row, column and thunk.

    Where it gives numbers the result is a matrix of numbers.
    """
    A = as_tuples("A", A)
    values = ones_unless(A.valid(), A.data)
    if left is not None or right is not None:
        pair = as_binary(op)
        z = jax.vmap(lambda v: pair(left, v) if right is None else pair(v, right))(values)
    elif isinstance(op, IndexUnaryOp):
        z = jax.vmap(lambda v, i, j: op(v, i, j, thunk))(values, *_keys(A))
    else:
        z = jax.vmap(op)(values)
    return _written(A.with_data(z), Options(**options))


@on_tuples
def select(A, op, thunk=0, **options):
    """`select` of tuples: by a predicate of (value, row, column, thunk), or of the value alone."""
    A = as_tuples("A", A)
    values, (rows, cols) = ones_unless(A.valid(), A.data), _keys(A)
    asked = _apply._predicate(op)
    if isinstance(asked, UnaryOp):
        flags = jax.vmap(asked)(values)
    else:
        flags = jax.vmap(lambda v, i, j: asked(v, i, j, thunk))(values, rows, cols)
    numbered = A.with_data(jnp.arange(A.nse, dtype=jnp.int32))
    chosen = IndexUnaryOp(_flag, "chosen", (flags,))
    kept = _apply.select(numbered, chosen, 0)
    return write(Tuples(kept, A.data), Options(**options))


def _flag(number, i, j, thunk, flags):
    return take(flags, number)


@on_tuples
def reduce(A, add, *, axis=None, **options):
    """`reduce` by a monoid of tuples, in the order of rows and columns; axis=None gives a value."""
    A, add = as_tuples("A", A), as_monoid(add)
    add.like(A.data)
    if axis not in (None, 0, 1, -1, -2) or (axis is not None and A.places.ndim == 1):
        raise ValueError(f"`axis` must be None, or 0 or 1 for a matrix; got {axis!r}.")
    axis = None if axis is None else axis % 2
    y = reduction(add, A, axis=axis)
    if axis is None:
        return y
    kept = 1 - axis
    rows = A.places.rowcol()[kept]
    present = jnp.zeros(A.shape[kept], bool).at[rows].set(True, mode="drop")
    return write(_present(y, present, A), Options(**options))


# ---- Places alone ----


@on_tuples
def transpose(A, **options):
    """`transpose` of tuples."""
    A = as_tuples("A", A)
    return write(A.T.asformat(A.format), Options(**options))


@on_tuples
def extract(A, i=None, j=None, **options):
    """`extract` from tuples: a submatrix or subvector."""
    A = as_tuples("A", A)
    found = _extract.extract(A.places, i, j)
    if not isinstance(found, Stored):
        raise ValueError("of tuples `extract` gives matrices and vectors: give a list of places.")
    return write(Tuples(found, A.values), Options(**options))


@on_tuples
def assign(C, value, i=None, j=None, *, accum=None, **options):
    """`assign` of tuples, without `accum`."""
    if accum is not None:
        raise ValueError("`assign` of tuples takes no `accum`.")
    C = as_tuples("C", C)
    both, places = _behind(C, as_tuples("value", value))
    return Tuples(_assign.assign(C.places, places, i, j, **options), both)
