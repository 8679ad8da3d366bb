"""The capacity of a sparse product, and its run: exact where eager, else what tracing knows."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._pytree import is_concrete
from ..compilation import on_gpu
from ..dispatch import Backend
from ..formats import CSR, SparseMatrix
from ..semirings import any_pair
from . import _mxm_methods as methods
from ._mxm_call import Call, rounded_up
from ._mxm_methods import op

MOST = 1 << 27  # slots allocated unasked


def run_eagerly(call: Call, nse: int | None, backend: Backend | None) -> CSR:
    """Values and patterns are known: the result has the size it needs, or `nse`."""
    if call.method in (None, "gustavson") and backend in (None, "xla") and not _gpu(call):
        return _eager_loops(call, nse)
    products = call.products()
    size = call.size(nse, products)
    if products <= size:  # all at once, then cut
        bound = min(rounded_up(products), call.shape[0] * call.shape[1])
        C = _run(call, bound, size, 1, backend)
        return _cut(C, int(C.count), nse)
    need = int(_symbolic(any_pair, *call.bare, size))
    _enough(need, nse)
    return _run(call, need if nse is None else nse, size, 2, backend)


def _gpu(call: Call) -> bool:
    return on_gpu((call.A, call.B))


def _enough(need: int, nse: int | None) -> None:
    if need == np.iinfo(np.int32).max:
        raise ValueError("the product has 2^31 entries or more, which int32 indices cannot hold.")
    if nse is not None and need > nse:
        raise ValueError(f"`nse` must be at least {need} to hold the result; got {nse}.")


def _run(call, nse, size, steps, backend):
    return op(
        call.semiring, call.A, call.B, call.mask, backend=backend, method=call.method, nse=nse,
        size=size, steps=steps, flip=call.flip,
    )  # fmt: skip


def _cut(C: CSR, need: int, nse: int | None) -> CSR:
    """C in the capacity asked for, which is at least `need`."""
    _enough(need, nse)
    capacity = need if nse is None else nse
    keep, extra = min(capacity, C.nse), max(capacity - C.nse, 0)
    data = jnp.pad(C.data[:keep], (0, extra))
    indices = jnp.pad(C.indices[:keep], (0, extra), constant_values=C.shape[1])
    return dataclasses.replace(C, data=data, indices=indices)


_pattern = jax.jit(methods.pattern_by_loops, static_argnums=3)
_fill = jax.jit(methods.fill_by_loops, static_argnames=("m", "nse", "flip"))


def _eager_loops(call: Call, nse: int | None) -> CSR:
    """On a CPU: the pattern, and with its size known the values."""
    bound = min(call.products(), call.shape[0] * call.shape[1], _mask_bound(call))
    capacity = rounded_up(bound)
    if bound > MOST:
        *_, found = _pattern(call.A, call.B, call.mask, 0)
        _enough(int(found.total), None)
        capacity = rounded_up(int(found.total))
    a, b, found = _pattern(call.A, call.B, call.mask, capacity)
    need = int(found.total)
    _enough(need, nse)
    capacity = need if nse is None else nse
    m = call.shape[0]
    result = _fill(call.semiring, a, b, _room(found, capacity), m=m, nse=capacity, flip=call.flip)
    return methods.csr_of(result, call.A, call.B)


def _room(found: Any, capacity: int) -> Any:
    """The pattern with at least `capacity` slots."""
    extra = max(capacity - found.rows.shape[0], 0)
    return found._replace(rows=jnp.pad(found.rows, (0, extra))) if extra else found


def _mask_bound(call: Call) -> int:
    """No result has more entries than a mask has, unless it is a complement."""
    if call.mask is None or call.mask.complement:
        return call.shape[0] * call.shape[1]
    source = call.mask.source
    return source.nse if isinstance(source, SparseMatrix) else source.size


@functools.partial(jax.jit, static_argnums=4)
def _symbolic(semiring, A, B, mask, size):
    return methods.by_sorting(semiring, A, B, mask, nse=0, size=size, steps=2, flip=False).total


def run_traced(call: Call, nse: int | None, backend: Backend | None) -> CSR:
    """Some values are traced. The patterns may be known still, as under an eager `grad`."""
    if is_concrete(call.pattern):
        products = call.products()
        size = call.size(nse, products)
        if nse is None:
            nse = _need(call, size)
        steps = 1 if products <= size else -(-products // size) + 1
        return _run(call, nse, size, steps, backend)
    if nse is None:
        nse = min(call.shape[0] * call.shape[1], _mask_bound(call), _static_bound(call))
        if nse > MOST:
            raise ValueError(
                f"`nse` must be given where patterns are traced: {nse} is the only safe bound."
            )
    return _run(call, nse, call.size(nse, None), None, backend)


def _static_bound(call: Call) -> int:
    (m, n), a, b = call.shape, call.A.nse, call.B.nse
    return min(a * min(n, b), b * min(m, a))


def _need(call: Call, size: int) -> int:
    """The exact capacity, from patterns alone."""
    with jax.ensure_compile_time_eval():
        if on_gpu(call.pattern):
            need = int(_symbolic(any_pair, *call.bare, size))
        else:
            need = int(_pattern(*call.bare, 0)[2].total)
    _enough(need, None)
    return need
