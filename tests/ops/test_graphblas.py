"""Every operation with every mask, accumulator and `replace` against SuiteSparse:GraphBLAS."""

import contextlib
import itertools
import os
import zlib
from unittest import mock

import jax
import numpy as np
import pytest
from graphblas_reference import (
    COMBINATIONS,
    GB_TYPE,
    MASKS,
    Combination,
    accum_name,
    compare,
    gb,
    our_options,
    ours,
    random_data,
    reference,
    their_options,
    theirs,
)
from graphblas_rows import GROUPS, ROWS
from graphblas_rows import theirs as theirs_operator
from strategies import precision

import jaxspv as jsp
from jaxspv.ops.write_rule import call, entries, write

THOROUGH = bool(os.environ.get("JAXSPV_THOROUGH"))
ROUNDS = 20 if THOROUGH else 1
TWICE = ("entries", "into vectors")
FORMATS = ("csr", "coo", "csc")


def operands_of(row, rng, dtype):
    return [
        random_data(rng, s[:-1], dtype, True) if s[-1] == "dense" else random_data(rng, s, dtype)
        for s in row.operands
    ]


def check(row, seed, dtypes, combination):
    rng = np.random.default_rng([zlib.crc32(row.name.encode()), seed])
    taken, given = dtypes
    operands = operands_of(row, rng, taken)
    out = random_data(rng, row.shape or (1,), given, row.dense)
    mask = random_data(rng, row.mask or row.shape or (1,), ("float32", "bool", "int32")[seed % 3])
    format = FORMATS[seed % 3]
    options = our_options(combination, out, mask, format) if row.shape else {}
    got = row.ours([ours(data, format) for data in operands], options)
    want = reference(row, operands, out, mask, combination)
    compare(got, want, row.fill)


def combinations_of(row):
    if not row.shape:
        return [Combination(out=False)] * 20
    if row.assigns or row.dense:
        return [c for c in COMBINATIONS if c.out]
    return COMBINATIONS


def plan(group):
    """(row, dtypes, combinations) of what a test of a group runs.

    With the first dtypes every combination; with the others, and for a row of an operation that
    a row before it has tried, every sixth. Where operations compile little, twice in float32.
    """
    tried = set()
    for row in GROUPS[group]:
        operation = (row.name.split()[0], len(row.shape))
        for k, dtypes in enumerate(row.dtypes):
            twice = k == 0 and dtypes == ("float32", "float32") and group in TWICE
            every = THOROUGH or twice or (operation not in tried and k == 0)
            tried.add(operation)
            listed = combinations_of(row)
            offset = zlib.crc32(f"{row.name} {k}".encode()) % 6
            listed = listed if every else listed[offset::6]
            yield row, dtypes, listed * (2 * ROUNDS if twice else ROUNDS)


UNION = jax.jit(lambda a, b: vars(entries.union(a, b)))
PARTS = {
    "union": lambda a, b: entries.Union(**UNION(a, b)),
    "keep": jax.jit(entries.keep, static_argnums=2),
    "find": jax.jit(entries.find),
    "entries_of": jax.jit(entries.entries_of),
}


@contextlib.contextmanager
def in_small_programs():
    """Operations run eagerly, in the programs of their parts, which combinations share."""

    def in_parts(fn, leaves, tree, **static):
        return fn(*jax.tree.unflatten(tree, leaves), **static)

    with mock.patch.object(call, "on_leaves", in_parts), mock.patch.multiple(write, **PARTS):
        yield


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("group", GROUPS)
def test_equals_graphblas(group):
    for row, dtypes, combinations in plan(group):
        with precision(dtypes[0]), precision(dtypes[1]), in_small_programs():
            for k, combination in enumerate(combinations):
                try:
                    check(row, k, dtypes, combination)
                except BaseException as failure:
                    failure.add_note(f"{row.name}, {dtypes}, {combination}")
                    raise


MXM = [("plus_times", "float32", mask) for mask in MASKS] + [
    ("min_plus", "float32", ("value", True)),
    ("any_pair", "float32", ("structure", False)),
    ("lor_land", "bool", ("array", True)),
    ("plus_minus", "int32", ("value", False)),
    ("max_firsti", "float32", ("structure", True)),
    ("min_secondj", "float32", (None, False)),
]
WRITES = [*itertools.product((None, "plus", "minus"), (False, True))]


@pytest.mark.parametrize("case", MXM, ids=str)
def test_mxm_equals_graphblas(case):
    """One program for every accumulator and `replace`, on traced patterns."""
    name, dtype, (kind, complement) = case
    ring, given = getattr(jsp.semirings, name), "int32" if name[-1] in "ij" else dtype
    ways = [Combination(kind, complement, *w) for w in WRITES if kind or not w[1]]

    @jax.jit
    def program(A, B, C, mask):
        return [
            jsp.mxm(
                A,
                B,
                ring,
                nse=30,
                method="sort",
                out=C,
                mask=mask,
                replace=way.replace,
                accum=way.accum and getattr(jsp.operators, accum_name(way.accum, given)),
            )
            for way in ways
        ]

    for seed in range(3 * ROUNDS):
        rng = np.random.default_rng([zlib.crc32(str(case).encode()), seed])
        A, B = (random_data(rng, shape, dtype) for shape in ((5, 7), (7, 6)))
        C, M = random_data(rng, (5, 6), given), random_data(rng, (5, 6), "float32")
        mask = our_options(ways[0], C, M, "csr").get("mask")
        got = program(ours(A), ours(B), ours(C), mask)
        for way, result in zip(ways, got, strict=True):
            want = theirs(C)
            product = theirs(A).mxm(theirs(B), theirs_operator("semiring", name))
            want(**their_options(way, C, M)) << product
            compare(result, want)


def test_there_are_enough_cases():
    cases = sum(len(listed) for group in GROUPS for _, _, listed in plan(group))
    cases += 3 * sum(3 if mask[0] is None else 6 for _, _, mask in MXM)
    assert cases >= 5000
    assert {*GB_TYPE} >= {d for row in ROWS for pair in row.dtypes for d in pair}
    assert gb is not None
