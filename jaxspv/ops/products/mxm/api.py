"""Matrix times matrix over a semiring: `mxm`, and how a product of sparse ones is planned."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ...._core.forms import overloadable
from ...._core.indices import checked_count, index_dtype_for, narrowed, widened
from ...._core.platforms import Backend
from ....algebra.semirings import Semiring, as_semiring, plus_times
from ....formats import SparseMatrix
from ....shapes import Allowed
from ...write_rule.call import Options, as_operand_mask, as_out, settled
from ...write_rule.call import call as write
from ...write_rule.entries import entries_of
from ...write_rule.write import as_accum
from ..common.hypersparse import beyond_int32, multiply_matrices
from ..common.product import positions_as
from ..spmm.api import multiply as multiply_array
from .call import checked, empty
from .methods import op
from .plan import methods, plan, remember

_ARRAYS = jax.Array, np.ndarray


@overloadable
def mxm(
    A: Any,
    B: Any,
    semiring: Semiring | str = plus_times,
    *,
    mask: Allowed = None,
    accum: Any = None,
    out: SparseMatrix | None = None,
    replace: bool = False,
    nse: int | None = None,
    method: str = "auto",
    chunk: int | None = None,
    backend: Backend | None = None,
) -> Any:
    """Multiplies two matrices: `C[i, j] = add_k mul(A[i, k], B[k, j])` over stored pairs.

    An entry of C is stored where at least one pair (A[i, k], B[k, j]) is, whatever its value.
    One of the two may be an array, of which all places are stored; then C is an array.

    Args:
        A: (m, l), any format, or a `Graph`; or an array (..., m, l).
        B: (l, n), likewise; or an array (..., l, n).
        semiring: `add` combines, `mul` extends; positional operators, `any` and your own included.
        mask: boolean (m, n) array, sparse matrix (by value), `structure(M)` or `~` of these: places
            that are not allowed are not computed; they stay what they are in `out`.
        accum: operator, monoid or function that combines an entry of `out` (first)
            and one of the product.
        out: sparse (m, n) matrix, an array where an operand is one: the C of `C<mask, replace> =
            C accum (A B)`; None: nothing is stored in it. The result is a new matrix of its dtype
            and format.
        replace: entries of `out` that the mask does not allow are deleted.
        nse: capacity of C. By default what C needs where the patterns of A and B are concrete,
            rounded up to one of few capacities (`.trim()` gives the exact one), else a safe bound.
        method: "auto", "rows" (kernels on an NVIDIA GPU: rows of few products sorted by warps,
            others marked and accumulated in shared memory), "gustavson" (row by row into a dense
            accumulator, on a CPU: in C++), "sort" (all products expanded, sorted by
            place, joined), "dot" (for each place of a sparse mask a row of A meets a column of B),
            "dense" (products scattered into dense accumulators of blocks of rows); with an array
            the name of an implementation; `explain` says which and why.
        chunk: products (or searches of "dot") held at a time, about 64 bytes each. By default as
            many as there are, 2^26 at most; where patterns are traced, twice `nse`, 2^24 at most. A
            product of any size runs: it takes more steps.
        backend: "pallas" ("rows", and with an array), "cpu", "xla", or None.

    Returns:
        A CSR (a COO of two COO, a CSC of two CSC), rows sorted, each place once. The dtype is that
        of `mul` on the dtypes of A and B (of positional operators the index dtype); indices are
        int64 where those of A, B or `out` are. `overflow` is set where entries did not fit `nse`.
        Where an extent is 2^31 - 1 or more, a COO. With `out`: see there; capacity `nse`, or as
        `ewise_add` of `out` and the product. With an array operand an array, the identity of `add`
        where nothing is stored. Results in bfloat16 and float16 are computed in float32.

    Raises:
        ValueError: shapes do not match; `nse` too small for concrete values (says the size needed);
            patterns are traced, `nse` is missing and no bound is reasonable; a capacity of 2^31 - 1
            or more.
        TypeError: an operand is no sparse matrix, or the monoid is not defined on the dtype.
        NotImplementedError: the form asked for cannot run; says why.

    Differentiable in both modes in the values of A and B and the semiring's parameters, the tangent
    on the pattern of C: for min and max the winning product, the first k at ties.

    Cost: O(products + entries) time, in steps of `chunk` products; memory O(entries + nse + chunk).
    With an array of k columns O(entries k) time, and memory O(entries) in addition to the result.

    Source: Gustavson, ACM TOMS 4 (3), 1978; Dalton, Olson, Bell, ACM TOMS 41 (4), 2015.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]])
    >>> jsp.mxm(A, A).todense().tolist()
    [[6.0, 0.0], [0.0, 6.0]]
    >>> jsp.mxm(A, A, jsp.semirings.min_plus).todense().tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    >>> jsp.mxm(A, jnp.array([[1.0, 10.0], [2.0, 20.0]])).tolist()
    [[4.0, 40.0], [3.0, 30.0]]
    """
    if isinstance(A, _ARRAYS) or isinstance(B, _ARRAYS):
        options = Options(mask, accum, out, replace)
        return multiply_array(A, B, semiring, options, method, backend)
    as_accum(accum)
    mask, out = as_operand_mask(mask), as_out(out)
    options = Options(mask, accum, out, replace, nse)
    capacity, chunk = checked_count("nse", nse, 0), checked_count("chunk", chunk, 1)
    semiring = as_semiring(semiring)
    if method != "auto" and method not in methods():
        raise ValueError(f"`method` must be one of {methods()}; got {method!r}.")
    how: dict[str, Any] = {"nse": capacity, "method": method, "chunk": chunk, "backend": backend}
    dtype = index_dtype_for(A, B, out)
    if out is not None:
        T = mxm(A, B, semiring, mask=mask, **how)
        return widened(write(entries_of, (T,), options), dtype)
    if beyond_int32(A, B):
        return multiply_matrices(
            lambda A, B, mask: mxm(A, B, semiring, mask=mask, **how), A, B, semiring, mask
        )
    A, B, mask = narrowed("`mxm`", A, B, mask)
    call = checked(A, B, positions_as(semiring, dtype), mask)
    if call.bound == 0:
        C = settled(empty(call.semiring, call.A, call.B, capacity or 0), capacity)
    else:
        s = plan(call, capacity, None if method == "auto" else method, chunk, backend)
        static = {"nse": s.nse, "size": s.size, "products": s.products}
        C = op(*call.operands, s.found, backend=backend, method=s.method, **static)
        C = settled(C, capacity, s.entries)
        if s.entries is None:
            remember(call, C)
    return widened(call.finish(C), dtype)
