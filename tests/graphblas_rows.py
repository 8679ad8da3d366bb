"""Every operation as one row: how jaxspv and how python-graphblas say it, and on what operands."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from graphblas_reference import gb

import jaxspv as jsp

A, SQUARE = (5, 7), (6, 6)
U, V = (7,), (5,)
I, J = [3, 0, 3, 1], [6, 2, 2]  # with repetitions
ONCE_I, ONCE_J = [3, 0, 4], [6, 2]


class Row(NamedTuple):
    """An operation with its operators and dtypes.

    Attributes:
        name: for messages; unique.
        operands: their shapes; "dense" after a shape makes a dense vector of it.
        ours: (operands, options) -> result.
        theirs: operands -> expression, which the harness writes into C(options).
        shape: of the result; () for a scalar, which takes no options.
        dtypes: (operands, `out`) pairs of names.
        dense: `out` is a dense vector; `fill` stands for what is missing.
        assigns: the kind of assignment: "assign" or "sub"; `out` is the first operand then, and
            `theirs` is (C, options, operands) -> None.
        mask: shape of the mask where it is not that of the result.
    """

    name: str
    operands: tuple
    ours: Callable
    theirs: Callable
    shape: tuple
    dtypes: tuple = (("float32", "float32"),)
    dense: bool = False
    fill: object = 0
    assigns: bool = False
    mask: tuple | None = None


F = (("float32", "float32"),)
FI = (("float32", "float32"), ("int32", "int32"))
FIB = (*FI, ("bool", "bool"))
WIDE = (("float64", "float64"), ("int64", "int64"))
CAST = (("float32", "int32"), ("int32", "float32"))  # `out` has another dtype than the result
POSITION = (("float32", "int32"),)
TRUTH = (("float32", "bool"),)


def op(name):
    """An operator of jaxspv by its name in python-graphblas."""
    own = {"min": "minimum", "max": "maximum", "abs": "absolute"}
    return getattr(jsp.operators, own.get(name, name))


def theirs(kind, name):
    """An operator of python-graphblas; those beyond the C API live in a namespace of their own."""
    family = getattr(gb, kind)
    return getattr(family.ss if name in dir(family.ss) else family, name)


def ewise(kind, name, dtypes, shape=A):
    label = f"{kind} {name} {len(shape)}d"
    return Row(
        label, (shape, shape), lambda x, o: getattr(jsp, kind)(*x, op(name), **o),
        lambda x: getattr(x[0], kind)(x[1], theirs("binary", name)), shape, dtypes,
    )  # fmt: skip


def union(name, shape):
    return Row(
        f"ewise_union {name} {len(shape)}d", (shape, shape),
        lambda x, o: jsp.ewise_union(*x, op(name), 2, 3, **o),
        lambda x: x[0].ewise_union(x[1], theirs("binary", name), 2, 3), shape, FI,
    )  # fmt: skip


def unary(name, dtypes, shape=A):
    return Row(
        f"apply {name} {len(shape)}d", (shape,), lambda x, o: jsp.apply(x[0], op(name), **o),
        lambda x: x[0].apply(theirs("unary", name)), shape, dtypes,
    )  # fmt: skip


def bound(name, side, dtypes, shape=A):
    return Row(
        f"apply {name} {side} {len(shape)}d", (shape,),
        lambda x, o: jsp.apply(x[0], op(name), **{side: 2}, **o),
        lambda x: x[0].apply(theirs("binary", name), **{side: 2}), shape, dtypes,
    )  # fmt: skip


def index_unary(name, thunk, dtypes=POSITION, shape=A):
    return Row(
        f"apply {name} {len(shape)}d", (shape,),
        lambda x, o: jsp.apply(
            x[0], op("rowindex" if name == "index" else name), thunk=thunk, **o),
        lambda x: x[0].apply(theirs("indexunary", name), right=thunk), shape, dtypes,
    )  # fmt: skip


def choice(name, thunk, dtypes=F, shape=A):
    return Row(
        f"select {name} {len(shape)}d", (shape,),
        lambda x, o: jsp.select(x[0], op(name), thunk, **o),
        # A thunk of another dtype than the values gives wrong results in python-graphblas 2025.2.
        lambda x: x[0].select(theirs("select", name), (
            x[0].dtype.np_type.type(thunk) if name.startswith("value") else thunk)), shape, dtypes,
    )  # fmt: skip


def reduction(name, axis, dtypes):
    monoid = getattr(jsp.monoids, {"min": "min_", "max": "max_"}.get(name, name))
    way = "reduce_rowwise" if axis else "reduce_columnwise"
    return Row(
        f"reduce {name} axis={axis}", (A,), lambda x, o: jsp.reduce(x[0], monoid, axis=axis, **o),
        lambda x: getattr(x[0], way)(theirs("monoid", name)), V if axis else U, dtypes,
    )  # fmt: skip


def total(name, dtypes, shape):
    monoid = getattr(jsp.monoids, {"min": "min_", "max": "max_"}.get(name, name))
    return Row(
        f"reduce {name} {len(shape)}d to a scalar", (shape,),
        lambda x, o: jsp.reduce(x[0], monoid),
        lambda x: (x[0].reduce_scalar if len(shape) == 2 else x[0].reduce)(
            theirs("monoid", name), allow_empty=False), (), dtypes,
    )  # fmt: skip


def product(name, dtypes, ours_name=None):
    """mxv and vxm over one semiring."""
    ring, other = getattr(jsp.semirings, ours_name or name), theirs("semiring", name)
    return [
        Row(f"mxv {name}", (A, U), lambda x, o: jsp.mxv(*x, ring, **o),
            lambda x: x[0].mxv(x[1], other), V, dtypes),
        Row(f"vxm {name}", (V, A), lambda x, o: jsp.vxm(*x, ring, **o),
            lambda x: x[0].vxm(x[1], other), U, dtypes),
    ]  # fmt: skip


def part(label, index, shape, source=A):
    return Row(
        f"extract {label}", (source,),
        lambda x, o: jsp.extract(x[0], *(index if isinstance(index, tuple) else (index,)), **o),
        lambda x: x[0][index], shape, F,
    )  # fmt: skip


def writing(sub, label, index, target, value, mask=None):
    """assign or subassign of a value of a shape (() for the scalar 3)."""
    pair = index if isinstance(index, tuple) else (index,)
    method = jsp.graphblas.subassign if sub else jsp.assign

    def reference(C, options, x):
        source = x[0] if value else 3
        if sub:
            C[index](**options) << source
        else:
            C(**options)[index] << source

    return Row(
        f"{method.__name__} {label}", (value,) if value else (),
        lambda x, o: method(o.pop("out"), x[0] if value else 3, *pair, **o), reference, target,
        FI, assigns=True, mask=mask if mask is not None else value if sub and value else target,
    )  # fmt: skip


EWISE = [
    *[ewise("ewise_add", n, FIB) for n in ("first", "second", "pair")],
    *[ewise("ewise_add", n, FI) for n in ("plus", "minus", "times", "min", "max", "rminus")],
    *[ewise("ewise_add", n, (("bool", "bool"),)) for n in ("lor", "land", "lxor", "lxnor")],
    ewise("ewise_add", "plus", (*WIDE, *CAST, ("uint8", "uint8"))),
    ewise("ewise_add", "bor", (("int32", "int32"),)),
    *[ewise("ewise_add", n, F, U) for n in ("plus", "minus", "min", "second")],
    *[ewise("ewise_mult", n, FI) for n in ("plus", "minus", "times", "min", "max", "first")],
    *[ewise("ewise_mult", n, TRUTH) for n in ("eq", "ne", "lt", "le", "gt", "ge")],
    *[ewise("ewise_mult", n, POSITION) for n in ("firsti", "firstj", "secondi", "secondj")],
    ewise("ewise_mult", "times", (*WIDE, *CAST)),
    *[ewise("ewise_mult", n, (("int32", "int32"),)) for n in ("band", "bxor", "bxnor")],
    *[ewise("ewise_mult", n, F, U) for n in ("times", "second", "truediv")],
    *[union(n, shape) for n in ("minus", "times", "max") for shape in (A, U)],
]  # fmt: skip
APPLY = [
    *[unary(n, FI) for n in ("ainv", "abs", "one", "identity")],
    *[unary(n, F) for n in ("exp", "floor", "sqrt")],
    unary("lnot", (("bool", "bool"),)), unary("bnot", (("int32", "int32"),)),
    unary("ainv", F, U), unary("identity", CAST, U),
    *[bound(n, side, FI) for n in ("minus", "times") for side in ("left", "right")],
    bound("minus", "left", F, U), bound("lt", "right", TRUTH),
    *[index_unary(n, 1) for n in ("rowindex", "colindex")],
    index_unary("index", 2, shape=U),
]  # fmt: skip
SELECT = [
    *[choice(n, k) for n in ("tril", "triu", "diag", "offdiag") for k in (0,)],
    choice("rowle", 2), choice("rowgt", 2), choice("colle", 3), choice("colgt", 3),
    *[choice(n, 2, FI) for n in ("valueeq", "valuene", "valuelt", "valuele", "valuegt", "valuege")],
    choice("valuegt", 1, F, U), choice("tril", 1, CAST),
]  # fmt: skip
REDUCE = [
    *[reduction(n, axis, FI) for n in ("plus", "min", "max", "times") for axis in (0, 1)],
    *[reduction(n, axis, (("bool", "bool"),)) for n in ("lor", "land", "lxor", "lxnor")
      for axis in (0, 1)],
    reduction("plus", 1, WIDE), reduction("bor", 0, (("uint8", "uint8"),)),
    *[total(n, FI, shape) for n in ("plus", "times", "min", "max") for shape in (A, U)],
]  # fmt: skip
PLACES = [
    Row("transpose", (A,), lambda x, o: jsp.transpose(x[0], **o), lambda x: x[0].T, A[::-1], FIB),
    Row("kron times", ((2, 3), (3, 2)), lambda x, o: jsp.kron(*x, **o),
        lambda x: x[0].kronecker(x[1], gb.binary.times), SQUARE, FI),
    Row("kron minus", ((2, 3), (3, 2)), lambda x, o: jsp.kron(*x, jsp.operators.minus, **o),
        lambda x: x[0].kronecker(x[1], gb.binary.minus), SQUARE, F),
    *[Row(f"diag {k} of a matrix", (A,), lambda x, o, k=k: jsp.diag(x[0], k, **o),
          lambda x, k=k: x[0].diag(k), (n,), F) for k, n in ((0, 5), (2, 5), (3, 4), (-2, 3))],
    *[Row(f"diag {k} of a vector", (V,), lambda x, o, k=k: jsp.diag(x[0], k, **o),
          lambda x, k=k: x[0].diag(k), (5 + abs(k),) * 2, F) for k in (0, 2, -1)],
    part("arrays", (I, J), (4, 3)), part("slices", (slice(1, 4), slice(0, 7, 2)), (3, 4)),
    part("a reversed slice", (slice(None, None, -1), slice(None)), A),
    part("rows", (I, slice(None)), (4, 7)), part("columns", (slice(None), J), (5, 3)),
    part("a row", (2, slice(None)), U), part("a column of rows", (ONCE_I, 4), (3,)),
    part("a subvector", J, (3,), U), part("a slice of a vector", slice(1, 6, 2), (3,), U),
]  # fmt: skip
ASSIGN = [
    row
    for sub in (False, True)
    for row in (
        writing(sub, "arrays", (ONCE_I, ONCE_J), A, (3, 2)),
        writing(sub, "slices", (slice(1, 4), slice(0, 7, 3)), A, (3, 3)),
        writing(sub, "everything", (slice(None), slice(None)), A, A),
        writing(sub, "a row", (2, ONCE_J), A, (2,), (2,) if sub else U),
        writing(sub, "a column", (ONCE_I, 4), A, (3,), (3,) if sub else V),
        writing(sub, "a scalar", (ONCE_I, ONCE_J), A, (), (3, 2) if sub else A),
        writing(sub, "a subvector", ONCE_J, U, (2,)),
        writing(sub, "a scalar in a vector", slice(1, 6, 2), U, (), (3,) if sub else U),
    )
]
PRODUCTS = [
    *product("plus_times", (*FI, *WIDE)), *product("min_plus", F), *product("max_second", F),
    *product("any_pair", F), *product("plus_minus", F), *product("lor_land", (("bool", "bool"),)),
    *product("lxor_land", (("bool", "bool"),)), *product("min_secondi", POSITION),
    *product("max_firstj", POSITION), *product("plus_firsti", POSITION),
]  # fmt: skip
D = ("dense",)
DENSE = [
    Row("ewise_add dense", (U + D, U + D), lambda x, o: jsp.ewise_add(*x, **o),
        lambda x: x[0].ewise_add(x[1], gb.binary.plus), U, F, dense=True),
    Row("ewise_add sparse and dense", (U, U + D), lambda x, o: jsp.ewise_add(
        *x, jsp.operators.minus, **o), lambda x: x[0].ewise_add(x[1], gb.binary.minus), U, F,
        dense=True),
    Row("ewise_mult sparse into dense", (U, U), lambda x, o: jsp.ewise_mult(*x, **o),
        lambda x: x[0].ewise_mult(x[1], gb.binary.times), U, F, dense=True),
    Row("apply dense", (U + D,), lambda x, o: jsp.apply(x[0], jsp.operators.ainv, **o),
        lambda x: x[0].apply(gb.unary.ainv), U, F, dense=True),
    Row("extract dense", (U + D,), lambda x, o: jsp.extract(x[0], J, **o), lambda x: x[0][J],
        (3,), F, dense=True),
    Row("reduce into dense", (A,), lambda x, o: jsp.reduce(x[0], axis=1, **o),
        lambda x: x[0].reduce_rowwise(gb.monoid.plus), V, F, dense=True),
    Row("mxv dense", (A, U + D), lambda x, o: jsp.mxv(*x, **o),
        lambda x: x[0].mxv(x[1], gb.semiring.plus_times), V, F, dense=True),
    Row("vxm dense min_plus", (V + D, A), lambda x, o: jsp.vxm(*x, jsp.semirings.min_plus, **o),
        lambda x: x[0].vxm(x[1], gb.semiring.min_plus), U, F, dense=True, fill=np.inf),
    Row("mxv sparse into dense", (A, U), lambda x, o: jsp.mxv(*x, **o),
        lambda x: x[0].mxv(x[1], gb.semiring.plus_times), V, F, dense=True),
]  # fmt: skip
# Rows whose results are written by the same compiled programs come together: they share a worker.
GROUPS = {
    "union": [r for r in EWISE if r.shape == A and "mult" not in r.name],
    "entries": [*[r for r in EWISE if r.shape == A and "mult" in r.name], *APPLY, *SELECT],
    "into vectors": REDUCE, "products": PRODUCTS,
    "element-wise on vectors": [r for r in EWISE if r.shape == U],
    "places": PLACES, "assign": ASSIGN, "dense": DENSE,
}  # fmt: skip
ROWS = [row for rows in GROUPS.values() for row in rows]
