"""Products of tuples on NVIDIA GPUs: when the kernel serves a call, and how it is called."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from pallas_kernels.layouts.ragged import LIMIT
from pallas_kernels.products.spmv_tuples import MOST_WORDS, csr_spmv_tuples
from pallas_kernels.simt.scalar_jaxpr import TupleSemiring, refuse_traced

from ...formats.tuples import Tuples
from .operations import product, traced

WORDS = ("float32", "int32", "bool")


def _refuse(
    semiring: Any, A: Tuples, x: Any, hit: Any, *, flip: bool, in_order: bool = False
) -> str | None:
    places = A.places
    if places.nse == 0 or 0 in places.shape:
        return "there is nothing to multiply"
    if places.index_dtype != jnp.int32 or places.nse + places.shape[0] > LIMIT:
        return "kernels count rows and entries in int32"
    if jax.tree.leaves(semiring):
        return "the semiring has parameters"
    try:
        mul, combine, term = traced(semiring, A, x, flip)
    except Exception as error:  # the form in XLA says it with the values
        return f"the functions of the semiring refuse: {error}"
    values = {"entries": A.values, "elements": (x, hit), "products": term}
    for name, value in values.items():
        leaves = jax.tree.leaves(value)
        if wrong := [v.dtype.name for v in leaves if v.dtype.name not in WORDS]:
            return f"kernels take float32, int32 and bool, not {wrong[0]}"
        if len(leaves) > MOST_WORDS or any(v.ndim > (name != "products") for v in leaves):
            return f"{name} are more than {MOST_WORDS} numbers each"
    return refuse_traced(mul) or refuse_traced(combine)


@product.register("rows", backend="pallas", refuse=_refuse)
def _rows(semiring: Any, A: Tuples, x: Any, hit: Any, *, flip: bool, in_order: bool = False) -> Any:
    """Rows and entries shared evenly by the warps of one launch, terms in their order. A matrix
    that is no CSR becomes one first: a sort, or a search where its rows are in order."""
    in_order = in_order and A.format == "csr"
    rows = A.places.asformat("csr")
    mul, combine, term = traced(semiring, A, x, flip)
    like = jax.tree.map(lambda t: jnp.zeros((1,), t.dtype), term)
    identity = tuple(i.item() for i in jax.tree.leaves(semiring.add.like(like)))
    numbers, of = None if in_order else rows.data, TupleSemiring(mul, combine, identity)
    values = (tuple(jax.tree.leaves(v)) for v in (A.values, x))
    found = csr_spmv_tuples(rows.indptr, rows.indices, numbers, *values, semiring=of, hit=hit)
    return jax.tree.unflatten(jax.tree.structure(term), found)
