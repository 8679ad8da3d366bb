"""The capacity of a sparse product, and its run: exact where eager, else what tracing knows."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.compilation import on_gpu, to_device
from ..._core.dispatch import Backend
from ..._core.indices import bucketed
from ..._core.pytree import is_concrete
from ...formats import CSR, SparseMatrix
from ...semirings import any_pair
from . import methods as methods
from .call import Call
from .methods import op

MOST = (1 << 31) - 2  # slots there can be
UNASKED = 1 << 27  # slots of a result allocated under jit without being asked for
GUESS = 1 << 22  # slots of the first buffer for a pattern
SMALL = 1 << 15  # slots of a result that is computed before its size is known


def run_eagerly(call: Call, nse: int | None, backend: Backend | None) -> CSR:
    """Values and patterns are known: the result has the size it needs, or `nse`."""
    if backend == "pallas":
        _run(call, call.method, 0, 1, 1, backend)  # raises
    gpu = _gpu(call)
    method = call.chosen(gpu)
    if method == "gustavson" and not gpu:
        return _eager_loops(call, nse)
    if method == "dot":
        size = call.size(nse, call.searches or 0)
        return _eager_cut(call, method, _mask_bound(call), size, 2, nse, backend)
    products = call.products
    size = call.size(nse, products)
    if products <= size:  # all at once
        bound = min(bucketed(products), call.shape[0] * call.shape[1])
        return _eager_cut(call, method, bound, size, 1, nse, backend)
    need = int(_symbolic(any_pair, *call.bare, size))
    _enough(need, nse)
    return _run(call, method, need if nse is None else nse, size, 2, backend)


def _eager_cut(call, method, bound, size, steps, nse, backend):
    """The product in a capacity that is large enough, then cut."""
    C = _run(call, method, bound, size, steps, backend)
    return _cut(C, int(_total(C.indptr)), nse, on_cpu=not _gpu(call))


@jax.jit
def _total(indptr):  # a program of its own: indexing outside of jit takes many times as long
    return indptr[-1]


@functools.partial(jax.jit, static_argnums=2)
def _first(data, indices, count):
    return data[:count], indices[:count]


def _gpu(call: Call) -> bool:
    return on_gpu((call.A, call.B))


def _enough(need: int, nse: int | None) -> None:
    if need == np.iinfo(np.int32).max:
        raise ValueError("the product has 2^31 entries or more, which int32 indices cannot hold.")
    if nse is not None and need > nse:
        raise ValueError(f"`nse` must be at least {need} to hold the result; got {nse}.")


def _run(call, method, nse, size, steps, backend):
    return op(
        call.semiring,
        call.A,
        call.B,
        call.mask,
        backend=backend,
        method=method,
        nse=nse,
        size=size,
        steps=steps,
        flip=call.flip,
    )


def _cut(C: CSR, need: int, nse: int | None, on_cpu: bool = False) -> CSR:
    """C in the capacity asked for, which is at least `need`."""
    _enough(need, nse)
    capacity = need if nse is None else nse
    if capacity == C.nse:
        return C
    keep, extra = min(capacity, C.nse), max(capacity - C.nse, 0)
    data, indices = C.data, C.indices
    if on_cpu:  # NumPy takes microseconds, and no program for each size
        data, indices = to_device([np.asarray(v)[:keep].copy() for v in (data, indices)])
    else:
        data, indices = _first(data, indices, keep)
    if extra:
        data = jnp.pad(data, (0, extra))
        indices = jnp.pad(indices, (0, extra), constant_values=C.shape[1])
    return CSR(data, indices, C.indptr, C.overflow, C.shape, True, True)


@functools.partial(jax.jit, static_argnames="capacity")
def _pattern(A, B, mask, *, capacity):
    return methods.pattern_by_loops(A, B, mask, capacity)


@functools.partial(jax.jit, static_argnames=("nse", "flip"))
def _fill(semiring, a, b, found, A, B, *, nse, flip):
    r = methods.fill_by_loops(semiring, a, b, found, m=A.shape[0], nse=nse, flip=flip)
    return methods.csr_of(r, A, B)


@functools.partial(jax.jit, static_argnames=("nse", "flip"))
def _whole(semiring, A, B, mask, *, nse, flip):
    a, b, found = methods.pattern_by_loops(A, B, mask, nse)
    r = methods.fill_by_loops(semiring, a, b, found, m=A.shape[0], nse=nse, flip=flip)
    return methods.csr_of(r, A, A if B is None else B), r.total


@functools.partial(jax.jit, static_argnames=("nse", "flip"))
def _masked(semiring, A, B, mask, *, nse, flip):
    r = methods.masked_by_loops(semiring, A, B, mask, nse=nse, flip=flip)
    return methods.csr_of(r, A, A if B is None else B), r.total


def _eager_loops(call: Call, nse: int | None) -> CSR:
    """On a CPU: the pattern, and with its size known the values; a small product in one program.

    A mask that lists places bounds the result, and has its pattern.
    """
    if methods.lists_places(call.mask):
        bound = min(_mask_bound(call), _static_bound(call))
        C, total = _masked(call.semiring, *_distinct(call), nse=bound, flip=call.flip)
        return _cut(C, int(total), nse, on_cpu=True)
    guess = _first_guess(call)
    if guess <= SMALL:
        C, total = _whole(call.semiring, *_distinct(call), nse=guess, flip=call.flip)
        need = int(total)
        if need <= guess:
            return _cut(C, need, nse, on_cpu=True)
    a, b, found = _exact_pattern(call)
    need = int(found.total)
    _enough(need, nse)
    capacity = need if nse is None else nse
    return _fill(call.semiring, a, b, found, call.A, call.B, nse=capacity, flip=call.flip)


def _distinct(call: Call) -> tuple[Any, Any, Any]:
    """A, B and the mask as `pattern_by_loops` takes them: A is listed by columns once."""
    mask, A = call.mask, call.A
    sorted_rows = not isinstance(A, CSR) or A.sorted  # a mask has to be, where A is by rows
    if mask is not None and mask.source is A and sorted_rows:
        mask = dataclasses.replace(mask, source=None)
    return call.A, None if call.B is call.A else call.B, mask


def _first_guess(call: Call) -> int:
    guess = min(bucketed(8 * (call.A.nse + call.B.nse)), GUESS)
    return min(guess, call.shape[0] * call.shape[1], _mask_bound(call), _static_bound(call))


def _exact_pattern(call: Call) -> Any:
    """A, B and the whole pattern. Where a buffer is too small, the pass stops as soon as it is
    full, and the next has eight times the room: an eighth more work at most."""
    capacity, bound = _first_guess(call), call.shape[0] * call.shape[1]
    operands = _distinct(call)
    while True:
        a, b, found = _pattern(*operands, capacity=min(capacity, bound, MOST))
        if not bool(found.cut):
            return a, b, found
        if capacity >= MOST:
            _enough(int(np.iinfo(np.int32).max), None)
        capacity *= 8


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
        method = call.chosen(on_gpu(call.pattern))
        products = call.products
        size = call.size(nse, products)
        if nse is None:
            nse = _need(call, size)
        steps = 1 if products <= size else -(-products // size) + 1
        return _run(call, method, nse, size, steps, backend)
    if nse is None:
        nse = min(call.shape[0] * call.shape[1], _mask_bound(call), _static_bound(call))
        if nse > UNASKED:
            raise ValueError(
                f"`nse` must be given where patterns are traced: {nse} is the only safe bound."
            )
    return _run(call, call.method, nse, call.size(nse, None), None, backend)


def _static_bound(call: Call) -> int:
    (m, n), a, b = call.shape, call.A.nse, call.B.nse
    return min(a * min(n, b), b * min(m, a))


def _need(call: Call, size: int) -> int:
    """The exact capacity, from patterns alone."""
    with jax.ensure_compile_time_eval():
        if on_gpu(call.pattern):
            need = int(_symbolic(any_pair, *call.bare, size))
        else:
            bare = dict(zip(("A", "B", "mask"), call.bare, strict=True))
            need = int(_exact_pattern(dataclasses.replace(call, **bare))[2].total)
    _enough(need, None)
    return need
