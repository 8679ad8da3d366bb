"""Every operation with every option against SuiteSparse:GraphBLAS, over many draws of data."""

from __future__ import annotations

import functools
import pathlib
import sys
from typing import Any

import jax
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))  # as pytest does

from graphblas_reference import (  # noqa: E402
    COMBINATIONS,
    Combination,
    accum_name,
    compare,
    ours,
    random_data,
    reference,
)
from graphblas_rows import ROWS  # noqa: E402

import jaxspv as jsp  # noqa: E402

from .cases import Case, Fuzzer  # noqa: E402
from .wrappers import NAMES, wrapped  # noqa: E402

WIDE = ("float64", "int64")
BY_NAME = {f"{row.name} {a} {b}": (row, (a, b)) for row in ROWS for a, b in row.dtypes}
BY_CODE = {str(number): way for number, way in enumerate(COMBINATIONS)}


def _options(way: Combination, out: Any, mask: Any) -> dict[str, Any]:
    """Keyword arguments of an operation of jaxspv, of operands that may be traced."""
    options: dict[str, Any] = {}
    if way.mask is not None:
        options["mask"] = jsp.structure(mask) if way.mask == "structure" else jsp.Mask(mask)
        options["mask"] = ~options["mask"] if way.complement else options["mask"]
    if way.out:
        options |= {"out": out, "replace": way.replace}
        if way.accum:
            options["accum"] = getattr(jsp.operators, accum_name(way.accum, out.dtype))
    return options


@functools.lru_cache(maxsize=32)
def _program(row_name: str, code: str, wrapper: str) -> Any:
    row, _ = BY_NAME[row_name]
    way = BY_CODE[code]

    def f(operands, out, mask):
        return row.ours(list(operands), _options(way, out, mask) if row.shape else {})

    return wrapped(f, wrapper)


def _possible(case: Case) -> bool:
    row, dtypes = BY_NAME[case["row"]]
    way = BY_CODE[case["way"]]
    if not case["x64"] and set(dtypes) & set(WIDE):
        return False
    if not row.shape:
        return case["way"] == "0"
    if row.assigns and not way.out:
        return False
    return not (row.dense and way.out) or case["format"] == "csr"


def run(case: Case) -> tuple[str, ...]:
    """Raises where the operation of the case gives another result than GraphBLAS."""
    with jax.enable_x64(case["x64"]):
        return _run(case)


def _run(case: Case) -> tuple[str, ...]:
    row, (taken, given) = BY_NAME[case["row"]]
    way, rng, format = BY_CODE[case["way"]], np.random.default_rng(case["seed"]), case["format"]
    operands = [
        random_data(rng, s[:-1], taken, True) if s[-1] == "dense" else random_data(rng, s, taken)
        for s in row.operands
    ]
    out = random_data(rng, row.shape or (1,), given, row.dense)
    mask = random_data(rng, row.mask or row.shape or (1,), case["mask dtype"])
    if not row.shape and any(data.values.size == 0 for data in operands):
        return ()  # a scalar of nothing is no scalar to them
    if way.mask == "array":
        source = np.zeros(mask.shape, bool)
        source[tuple(mask.places.T)] = mask.values != 0
    else:
        source = ours(mask, format) if way.mask else None
    arrays = [ours(data, format) for data in operands], ours(out, format), source
    got = _program(case["row"], case["way"], case["wrapper"])(*arrays)
    compare(jax.device_get(got), reference(row, operands, out, mask, way), row.fill)
    return ("graphblas",)


FUZZER = Fuzzer(
    {
        "row": tuple(BY_NAME),
        "way": tuple(BY_CODE),
        "format": ("csr", "coo", "csc", "unsorted", "repeated"),
        "mask dtype": ("bool", "float32", "int32"),
        "wrapper": NAMES,
        "x64": (False, True),
    },
    run,
    draws=lambda case: 3 if case["wrapper"] == "captured" else None,
    possible=_possible,
)
