"""The types of kernels: values of one thread with operators, one or several side by side, arrays,
and the primitives that the GPU form and the interpreter implement.
"""

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, Union

Operand = Union["Value", int, float, bool]
Mask = Union["Value", None]
Body = Callable[..., Any]  # of loops and branches: None, a value, or a tuple of operands


class Array:
    """An array in a kernel: words of global memory or of the CTA's shared memory."""

    kind: str  # "i32" or "f32"
    size: Any  # words, a Python int; None if it depends on the thread
    space: str  # "global" or "shared"
    base: Any  # of the GPU form: address, scope of atomics, memref
    scope: str
    ref: Any
    data: Any  # of the interpreter


class Arrays(types.SimpleNamespace):
    """The arrays of a launch under their names; None under all others."""

    def __getattr__(self, name: str) -> Any:
        return None


def _operator(op: str, relation: bool = False, swapped: bool = False):
    def method(self: "Value", o: Operand) -> "Value":
        a, b = (o, self) if swapped else (self, o)
        return self.k.relate(op, a, b) if relation else self.k.operate(op, a, b)

    return method


class Value:
    """One int32 ("i32"), float32 ("f32") or boolean ("i1") of one thread."""

    def __init__(self, k: Any, v: Any, kind: str):
        self.k, self.v, self.kind = k, v, kind

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", swapped=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", swapped=True)
    __and__, __rand__ = _operator("and"), _operator("and", swapped=True)
    __or__, __ror__ = _operator("or"), _operator("or", swapped=True)
    __lshift__, __rlshift__ = _operator("shl"), _operator("shl", swapped=True)
    __truediv__ = __floordiv__ = _operator("div")
    __mod__, __xor__, __rshift__ = _operator("rem"), _operator("xor"), _operator("sar")
    __lt__, __le__ = _operator("lt", relation=True), _operator("le", relation=True)
    __gt__, __ge__ = _operator("gt", relation=True), _operator("ge", relation=True)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, o: Operand) -> "Value":  # pyright: ignore
        return self.k.relate("eq", self, o)

    def __ne__(self, o: Operand) -> "Value":  # pyright: ignore
        return self.k.relate("ne", self, o)

    def __invert__(self) -> "Value":
        return self.k.operate("xor", self, -1 if self.kind == "i32" else True)

    def __neg__(self) -> "Value":
        return self.k.operate("sub", -0.0 if self.kind == "f32" else 0, self)

    def __bool__(self):
        raise TypeError("a kernel value has no truth in Python: use k.if_, k.where or k.while_")


class Several(Value):
    """Values of one thread side by side, so that what they wait for is in flight together: what an
    operator or a primitive does to a value, it does to each of these; where other operands are
    single values, they are the same for all.
    """

    def __init__(self, values: Iterable[Value]):
        self.values = tuple(values)
        self.k, self.kind = self.values[0].k, self.values[0].kind

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, j):
        return self.values[j]


def each(f: Callable[..., Any]) -> Callable[..., Any]:
    """A method that is called for each of `Several`; where it returns tuples, this one returns a
    tuple of several."""

    @functools.wraps(f)
    def method(self, *given, **named):
        many = _many(given) or _many(named.values())
        if not many:
            return f(self, *given, **named)
        found = []
        for j in range(many):
            by_name = {name: _one(x, j, many) for name, x in named.items()}
            found.append(f(self, *(_one(x, j, many) for x in given), **by_name))
        return together(found)

    return method


def together(found: Iterable[Any]) -> Any:
    """Values as `Several`; of tuples, a tuple of several."""
    found = list(found)
    if isinstance(found[0], tuple):
        return tuple(map(Several, zip(*found, strict=True)))
    return None if found[0] is None else Several(found)


def _many(given: Iterable[Any]) -> int:
    """How many values the first operand has that is several, 0 if none is; lists may hold it."""
    for x in given:
        many = len(x) if isinstance(x, Several) else _many(x) if isinstance(x, tuple | list) else 0
        if many:
            return many
    return 0


def _one(x: Any, j: int, many: int) -> Any:
    if isinstance(x, tuple | list):
        return [_one(y, j, many) for y in x]
    if not isinstance(x, Several):
        return x
    if len(x) != many:
        raise ValueError(f"operands of {len(x)} and of {many} values side by side")
    return x[j]


def one_by_one(*operands: Any) -> list[list[Any]]:
    """What some operands are for the first of several, for the second, ..."""
    many = _many(operands) or 1
    return [_one(operands, j, many) for j in range(many)]


def flat(carry: Iterable[Any]) -> tuple[Any, ...]:
    """The values of some operands, one after the other."""
    return tuple(v for x in carry for v in (x if isinstance(x, Several) else (x,)))


def like(carry: Iterable[Any], values: Iterable[Any]) -> tuple[Any, ...]:
    """Values as operands of the form of `carry` again."""
    left = iter(values)
    return tuple(
        Several(next(left) for _ in x) if isinstance(x, Several) else next(left) for x in carry
    )


class Primitives(Protocol):
    """What each form implements; `launch.py` describes the primitives."""

    thread: Value
    cta: Value
    lane: Value
    warp: Value
    threads: int
    ctas: int
    devices: int
    _slot: Array  # eight shared words of the barriers

    def const(self, x: Operand, kind: str = "i32") -> Value: ...
    def binary(self, op: str, a: Value, b: Value) -> Value: ...
    def compare(self, op: str, a: Value, b: Value) -> Value: ...
    def where(self, c: Operand, a: Operand, b: Operand) -> Value: ...
    def cast(self, x: Value, kind: str) -> Value: ...
    def bits(self, x: Value, kind: str) -> Value: ...
    def halves(self, word: Value) -> tuple[Value, ...]: ...
    def pack(self, low: Value, high: Value, narrow: str) -> Value: ...
    def popc(self, x: Value) -> Value: ...
    def ctz(self, x: Value) -> Value: ...
    def sqrt(self, x: Value) -> Value: ...
    def exp2(self, x: Value) -> Value: ...
    def log2(self, x: Value) -> Value: ...

    def loop(
        self, cond: Callable[..., Operand], body: Body, *carry: Operand
    ) -> tuple[Value, ...]: ...
    def branch(self, cond: Operand, then: Body, *default: Operand) -> tuple[Value, ...]: ...

    def shared(self, words: int, kind: str = "i32") -> Array: ...
    def on(self, a: Array, device: Operand) -> Array: ...
    def either(self, c: Value, a: Array, b: Array) -> Array: ...
    def load(
        self, a: Array, i: Operand, mask: Mask = None, other: Operand = 0, cache: str | None = None
    ) -> Value: ...
    def load_vec(
        self,
        a: Array,
        i: Operand,
        width: int,
        mask: Mask = None,
        other: Operand = 0,
        cache: str | None = None,
    ) -> tuple[Value, ...]: ...
    def load_half(self, a: Array, i: Operand) -> Value: ...
    def load_pair(
        self, a: Array, i: Operand, mask: Mask = None, acquire: bool = True
    ) -> tuple[Value, ...]: ...
    def store(self, a: Array, i: Operand, v: Operand, mask: Mask = None) -> None: ...
    def store_vec(
        self, a: Array, i: Operand, values: Sequence[Operand], mask: Mask = None
    ) -> None: ...
    def store_half(self, a: Array, i: Operand, v: Value, mask: Value) -> None: ...
    def store_pair(
        self, a: Array, i: Operand, x: Operand, y: Operand, mask: Mask = None
    ) -> None: ...
    def prefetch(self, a: Array, i: Operand, mask: Mask = None) -> None: ...
    def atomic(
        self, op: str, a: Array, i: Operand, v: Operand, mask: Mask = None, order: str = "relaxed"
    ) -> Value: ...
    def atomic_cas(
        self, a: Array, i: Operand, compare: Operand, v: Operand, mask: Mask = None
    ) -> Value: ...
    def reduce(self, op: str, a: Array, i: Operand, v: Operand, mask: Mask = None) -> Any: ...
    def reduce_vec(
        self, a: Array, i: Operand, values: Sequence[Operand], mask: Mask = None
    ) -> None: ...
    def least_pair(
        self, a: Array, i: Operand, x: Operand, y: Operand, mask: Mask = None
    ) -> None: ...

    def ballot(self, b: Operand) -> Value: ...
    def shfl(self, v: Value, lane: Operand) -> Value: ...
    def shfl_up(self, v: Value, d: Operand) -> Value: ...
    def shfl_xor(self, v: Value, d: Operand) -> Value: ...
    def sync_warp(self) -> None: ...
    def sync(self) -> None: ...
    def sync_count(self, b: Operand) -> Value: ...
    def fence(self, scope: str = "gpu") -> None: ...
    def clock(self) -> Value: ...
