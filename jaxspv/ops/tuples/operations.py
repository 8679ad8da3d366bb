"""The operations behind products and reductions of tuples, in XLA: gathers and segmented scans."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..._core.operation import Operation
from ..._core.tuples import choose, multiplied, ones_unless, take
from ...formats.tuples import Tuples

product = Operation("product of tuples", "definition")
reduction = Operation("reduction of tuples", "definition")
product.gpu_forms_in(f"{__package__}.gpu")


@product.register("segments")
def _product(
    semiring: Any, A: Tuples, x: Any, hit: Any, *, flip: bool, in_order: bool = False
) -> Any:
    """y (m, ...) of dense x (n, ...); hit: (n,) bool, the elements of x that are there, or None.
    in_order: as of `Tuples`; kernels read less then."""
    places, m = A.places, A.shape[0]
    if semiring.add.by_segments is None:  # which takes them in any order
        places = places.to_coo()
    rows, cols = places.rowcol()
    valid = rows < m
    if hit is not None:
        valid &= take(hit, cols)
    a, v = (ones_unless(valid, take(*p)) for p in ((A.values, places.data), (x, cols)))
    terms = multiplied(semiring, *((v, a) if flip else (a, v)))
    rows = jnp.where(valid, rows, m)
    return semiring.add.segment_reduce(terms, rows, m, sorted=hit is None)


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
