"""`check_invariants`: checks of what every sparse object promises about its indices.

A format lists its promises as (message, whether broken) pairs, written once for NumPy (on a CPU,
where nothing is compiled) and JAX (one program on an accelerator, where nothing is copied).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .._core.eager.arrays import by_numpy
from .._core.indices import with_pattern
from .._core.pytree import is_concrete

_S = TypeVar("_S")
Promises = list[tuple[str, Any]]
STATICS = ("shape", "nse", "sorted", "unique", "nt", "C", "transposed")


def check(
    x: _S,
    fields: tuple[str, ...],
    promises: Callable[[Any, Any], Promises],
    *,
    owner: Any = None,
    shape: tuple[int, int] | None = None,
) -> _S:
    """`x`, if its arrays `fields` keep `promises(x, numpy or jax.numpy)`; values are not read.

    What vmap made is checked object by object.

    Args:
        x: a sparse object.
        fields: the names of the arrays that are looked at.
        promises: what they promise.
        owner: what has the arrays; None: `x`.
        shape: that of the promises; None: that of `x`.

    Raises:
        ValueError: a promise is broken, or an array is traced.
    """
    with_pattern(x)
    kind = type(x).__name__
    arrays = {name: getattr(x if owner is None else owner, name) for name in fields}
    if not is_concrete(arrays):
        raise ValueError(f"`check_invariants` of a {kind} needs concrete values.")
    static = {n: getattr(o, n) for o in (x, owner) for n in STATICS if hasattr(o, n)}
    static["shape"] = shape or static["shape"]
    batch = np.shape(x.overflow) if hasattr(x, "overflow") else ()  # pyright: ignore
    for place in np.ndindex(batch):
        one = {name: array[place] for name, array in arrays.items()} if batch else arrays
        if all(map(by_numpy, one.values())):
            host = {name: np.asarray(array) for name, array in one.items()}
            broken = _numbered(promises(types.SimpleNamespace(**host, **static), np))
        else:
            broken = _on_device(promises, tuple(sorted(static.items())), one)
        for (_, message), failed in jax.device_get(broken).items():
            if failed:
                raise ValueError(
                    f"this {kind} of shape {static['shape']} breaks its invariants: {message}."
                )
    return x


def check_places(x: Any) -> Any:
    """`x`, if the places that its pointers, already checked, lead to are in range and distinct.
    Raises ValueError: they are not."""
    if np.shape(x.overflow):
        for place in np.ndindex(np.shape(x.overflow)):
            check_places(jax.tree.map(lambda leaf, at=place: leaf[at], x))
        return x
    row, col = jax.jit(type(x).rowcol)(x)
    own = {"shape": x.shape, "nse": x.nse, "unique": x.unique, "sorted": False}
    return check(x, ("row", "col"), of_pairs, owner=types.SimpleNamespace(row=row, col=col, **own))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _on_device(promises, static, arrays):
    return _numbered(promises(types.SimpleNamespace(**arrays, **dict(static)), jnp))


def _numbered(promises: Promises) -> dict[tuple[int, str], Any]:
    """Numbered keys, as JAX sorts dictionaries by key: the first broken promise is reported."""
    return {(number, message): bad for number, (message, bad) in enumerate(promises)}


# ---- What formats promise ----


def length(name: str, array: Any, size: int) -> Promises:
    """Invariants of an array of a fixed length."""
    return [(f"`{name}` must have length {size}; got shape {array.shape}", array.shape != (size,))]


def pointer(name: str, ptr: Any, end: int, xp: Any) -> Promises:
    """Invariants of the offsets of a compressed axis into `end` slots."""
    return [
        (f"`{name}` must begin with 0", ptr[0] != 0),
        (f"`{name}` must not descend", xp.any(ptr[1:] < ptr[:-1])),
        (f"`{name}` must not go beyond {end}", xp.any(ptr > end)),
    ]


def places(name: str, index: Any, extent: int, used: Any, xp: Any) -> Promises:
    """Invariants of indices along an axis: in range where `used`, at the extent in padding."""
    inside = (index >= 0) & (index < extent)
    return [
        (f"`{name}` must lie in [0, {extent})", xp.any(used & ~inside)),
        (f"`{name}` must be {extent} in padding", xp.any(~used & (index != extent))),
    ]


def order(keys: tuple[Any, ...], used: Any, x: Any, xp: Any) -> Promises:
    """Invariants of the flags `sorted` and `unique`; `keys`: the most significant first."""
    if not x.sorted:
        if not x.unique:
            return []
        by = xp.lexsort((*reversed(keys), ~used))
        keys, used = tuple(key[by] for key in keys), used[by]
    before, same = False, True
    for key in keys:
        before = before | (same & (key[1:] < key[:-1]))
        same = same & (key[1:] == key[:-1])
    both = used[1:] & used[:-1]
    found = [("its entries are not `sorted`", xp.any(both & before))]
    if x.unique:
        found.append(("a place comes twice, and it says `unique`", xp.any(both & same)))
    return found


def of_lines(x: Any, xp: Any, *, axis: int) -> Promises:
    """Invariants of a CSR (axis=0) or CSC."""
    major, minor, nse = x.shape[axis], x.shape[1 - axis], x.indices.shape[0]
    used = xp.arange(nse) < x.indptr[-1]
    promises = length("indptr", x.indptr, major + 1) + length("indices", x.indices, x.nse)
    promises += pointer("indptr", x.indptr, nse, xp) + places("indices", x.indices, minor, used, xp)
    where = xp.clip(x.indptr, 0, nse)
    fixed = {"minlength": nse + 1} if xp is np else {"length": nse + 1}
    line = xp.cumsum(xp.bincount(where, **fixed))[:nse]  # grows where a line ends
    return promises + order((line, x.indices), used, x, xp)


def of_list(x: Any, xp: Any) -> Promises:
    """Invariants of a `SparseVector`."""
    (n,) = x.shape
    used = xp.arange(x.indices.shape[0]) < x.count
    return [
        *length("indices", x.indices, x.nse),
        (f"`count` must lie in [0, {x.nse}]", (x.count < 0) | (x.count > x.nse)),
        *places("indices", x.indices, n, used, xp),
        *order((x.indices,), used, x, xp),
    ]


def of_tiles(x: Any, xp: Any) -> Promises:
    """Invariants of the pointers of a `Tiled`; `of_pairs` checks where they lead."""
    m, n = x.shape[::-1] if x.transposed else x.shape
    down, across = -(-m // x.nt), -(-n // x.nt)
    tiles, rest = x.tile_col.shape[0], x.rest_row.shape[0]
    return [
        *length("tile_ptr", x.tile_ptr, down + 1),
        *length("slot_ptr", x.slot_ptr, tiles + 1),
        *pointer("tile_ptr", x.tile_ptr, tiles, xp),
        *pointer("slot_ptr", x.slot_ptr, x.nse - rest, xp),
        *places("tile_col", x.tile_col, across, xp.arange(tiles) < x.tile_ptr[-1], xp),
    ]


def of_vector_tiles(x: Any, xp: Any) -> Promises:
    """Invariants of a `TiledVector`."""
    (n,), nt, each = x.shape, x.nt, max(x.nt // 32, 1)
    across, capacity = -(-n // nt), x.x_tile.shape[0] // nt
    promises = length("x_ptr", x.x_ptr, across) + length("x_tile", x.x_tile, capacity * nt)
    promises += length("bits", x.bits, capacity * each)
    if any(bad for _, bad in promises):
        return promises
    here = xp.where((x.x_ptr >= 0) & (x.x_ptr < capacity), x.x_ptr, capacity)
    fixed = {"minlength": capacity + 1} if xp is np else {"length": capacity + 1}
    times = xp.bincount(here, **fixed)[:capacity]
    words = x.bits.reshape(capacity, each)
    ends = xp.array(_first_bits(nt, each) if across else [0] * each, dtype=np.uint32)
    last = xp.array(_first_bits(n - nt * (across - 1), each) if across else [0] * each, np.uint32)
    is_last = (xp.arange(capacity) == here[-1]) if across else xp.zeros(capacity, bool)
    allowed = xp.where(is_last[:, None], last, ends)
    return [
        (f"`x_ptr` must lie in [-1, {capacity})", xp.any((x.x_ptr < -1) | (x.x_ptr >= capacity))),
        ("`x_ptr` must lead to each tile once", xp.any(times > 1)),
        ("`bits` must be 0 in padding", xp.any((times == 0)[:, None] & (words != 0))),
        (f"`bits` must be 0 from place {n} on, and beyond a tile", xp.any(words & ~allowed)),
    ]


def of_bits(x: Any, xp: Any) -> Promises:
    """Invariants of a `BitVector`."""
    (n,), size = x.shape, -(-x.shape[0] // 64) * 2
    promises = length("words", x.words, size)
    if promises[0][1]:
        return promises
    allowed = xp.array(_first_bits(n, size), dtype=np.uint32)
    return [*promises, (f"`words` must be 0 from bit {n} on", xp.any(x.words & ~allowed))]


def _first_bits(count: int, words: int) -> np.ndarray:
    """Words of 32 bits of which the first `count` are set."""
    whole = np.arange(words) < count // 32
    part = np.where(np.arange(words) == count // 32, (1 << count % 32) - 1, 0)
    return np.where(whole, 0xFFFFFFFF, part).astype(np.uint32)


def of_words(x: Any, xp: Any) -> Promises:
    """Invariants of the rows or columns of a `BitTiled`; `of_pairs` checks where they lead."""
    major, minor = x.shape
    down, across = -(-major // x.nt), -(-minor // x.nt)
    tiles, rest = x.tile_minor.shape[0], x.rest_minor.shape[0]
    padding = xp.arange(tiles) >= x.tile_ptr[-1]
    return [
        *length("tile_ptr", x.tile_ptr, down + 1),
        *length("rest_ptr", x.rest_ptr, major + 1),
        *pointer("tile_ptr", x.tile_ptr, tiles, xp),
        *pointer("rest_ptr", x.rest_ptr, rest, xp),
        *places("tile_minor", x.tile_minor, across, ~padding, xp),
        *places("rest_minor", x.rest_minor, minor, xp.arange(rest) < x.rest_ptr[-1], xp),
        ("`words` must be 0 in padding", xp.any(padding[:, None, None] & (x.words != 0))),
    ]


def of_pairs(x: Any, xp: Any) -> Promises:
    """Invariants of triplets: both indices in range, or both at their extents."""
    (m, n), row, col = x.shape, x.row, x.col
    used = (row != m) | (col != n)
    inside = (row >= 0) & (row < m) & (col >= 0) & (col < n)
    promises = length("row", row, x.nse) + length("col", col, x.nse)
    where = f"`row` and `col` must lie in [0, {m}) and [0, {n}), or be {m} and {n} in padding"
    promises.append((where, xp.any(used & ~inside)))
    if x.sorted:
        promises.append(("padding must come last", xp.any(used[1:] & ~used[:-1])))
    return promises + order((row, col), used, x, xp)
