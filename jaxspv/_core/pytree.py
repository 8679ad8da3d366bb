"""Frozen dataclasses that are pytrees: arrays are leaves, `static()` fields are not."""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import json
import operator
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, dataclass_transform

import jax
import numpy as np
from jax import export
from jax.core import Tracer

from .html import card

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
SHOWN = 16  # elements of an array that a result prints as numbers


def static(**kwargs: Any) -> Any:
    """A field that belongs to the treedef (hashable), not to the leaves."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


def transient(**kwargs: Any) -> Any:
    """A field of this object alone, no part of the pytree: rebuilt, an object has its default."""
    return dataclasses.field(metadata={"transient": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(static, transient, dataclasses.field))
def pytree_dataclass(cls: type[_T]) -> type[_T]:
    """Class decorator: frozen dataclass and pytree whose unflatten goes around `__init__`.

    JAX puts placeholders (None, `object()`, axis numbers) into pytrees, so nothing may be checked
    when one is rebuilt. Equality and hash are by identity: the fields hold arrays.
    """
    cls = dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    fields = dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
    leaves = [f.name for f in fields if not f.metadata]
    statics = [f.name for f in fields if f.metadata.get("static")]
    names, keys = (*leaves, *statics), list(map(jax.tree_util.GetAttrKey, leaves))
    leaves_of, statics_of = _getter(leaves), _getter(statics)

    def flatten(obj):  # at every eager call, for every operand
        return leaves_of(obj), statics_of(obj)

    def flatten_with_keys(obj):
        return list(zip(keys, leaves_of(obj), strict=True)), statics_of(obj)

    def unflatten(aux, children):
        obj = object.__new__(cls)
        vars(obj).update(zip(names, (*children, *aux), strict=True))
        return obj

    cls._leaves_and_static = staticmethod(flatten)  # pyright: ignore[reportAttributeAccessIssue]
    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    if "<locals>" not in cls.__qualname__:
        export.register_pytree_node_serialization(
            cls,
            serialized_name=_serialized_name(cls),
            serialize_auxdata=_written(cls.__name__),
            deserialize_auxdata=lambda text: in_tuples(json.loads(bytes(text))),
        )
    return cls


class Algebraic:
    """The base of operators, monoids and semirings: equal where functions and parameters are.

    Those of the library are pickled by their names, or by the `factory` that makes them; a copy of
    one is itself, or has copies of its parameters.
    """

    _leaves_and_static: ClassVar[Any]  # (obj) -> its leaves, its static fields

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        (mine, tree), (theirs, other_tree) = jax.tree.flatten(self), jax.tree.flatten(other)
        return tree == other_tree and all(map(_same, mine, theirs))

    def __hash__(self) -> int:  # not JAX's of the structure, which leaves out static fields
        leaves, static = self._leaves_and_static(self)
        parts = [part for part in leaves if isinstance(part, Algebraic)]
        return hash((type(self), static, *parts))

    def __reduce_ex__(self, protocol: Any) -> Any:
        leaves = jax.tree.leaves(self)
        place = _NAMED.get(jax.tree.map(lambda _: None, self) if leaves else self)
        return super().__reduce_ex__(protocol) if place is None else (_named, (*place, leaves))


# An object, its parameters None -> its module and name; of a factory the arguments, and the path.
_NAMED: dict[Algebraic, tuple[Any, ...]] = {}


def named(module: str, names: dict[str, Any]) -> None:
    """Enters the `Algebraic` objects among the names of a module, for pickle and copies."""
    for name, value in names.items():
        if isinstance(value, Algebraic):
            _NAMED.setdefault(value, (module, name, None, ()))


def factory(make: _F) -> _F:
    """Decorator of a function that makes an `Algebraic` object: one for equal arguments.

    Its result, and what that consists of, are pickled and copied as the function and its arguments.
    """
    signature = inspect.signature(make)

    @functools.cache
    def made(*args):
        found = make(*args)
        enter(found, args)
        return found

    def enter(value, args, *path):
        if isinstance(value, Algebraic):
            _NAMED.setdefault(value, (make.__module__, make.__name__, args, path))
            for name, part in vars(value).items():
                enter(part, args, *path, name)

    @functools.wraps(make)
    def call(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return made(*bound.args)

    return call  # pyright: ignore[reportReturnType]


def _named(module: str, name: str, args: Any, path: tuple[str, ...], leaves: Any) -> Any:
    found = getattr(importlib.import_module(module), name)
    found = functools.reduce(getattr, path, found if args is None else found(*args))
    if not leaves:
        return found
    return jax.tree.unflatten(jax.tree.structure(found, is_leaf=lambda v: v is None), leaves)


def _same(x: Any, y: Any) -> bool:
    """Whether two parameters are the same, or equal as far as they are known."""
    return x is y or (is_concrete(x, y) and np.array_equal(x, y))


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The attributes of these names as a tuple."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda obj: tuple(getattr(obj, name) for name in names)


def _serialized_name(cls: type) -> str:
    """`jaxspv.CSR`: what exported programs call a class, wherever its module moves. JAX refuses a
    name that is taken, so that the classes of the project have names of their own."""
    package = cls.__module__.partition(".")[0]
    return f"{package if package == 'jaxspv' else cls.__module__}.{cls.__qualname__}"


def _written(name: str) -> Callable[[Any], bytes]:
    """Writes static fields (numbers, strings, tuples of them) for `jax.export`."""

    def write(aux):
        try:
            return json.dumps(aux).encode()
        except TypeError:
            why = f"its static fields {aux} hold a function. Close over it instead."
            if any(hasattr(field, "mesh") for field in aux):
                why = (
                    "its mesh is of devices of this process. Pass the arrays of `leaves, tree = "
                    "jax.tree.flatten(G)`, and call `tree.unflatten(leaves)` inside."
                )
            raise TypeError(f"an exported function cannot take or return a {name}: {why}") from None

    return write


def in_tuples(value: Any) -> Any:
    """Lists, as JSON has them, as tuples."""
    return tuple(map(in_tuples, value)) if isinstance(value, list) else value


def result_tuple(cls: type[_T]) -> type[_T]:
    """Class decorator of named tuples that algorithms return: `jax.export` can serialise them."""
    cls.__repr__ = _result_repr  # pyright: ignore[reportAttributeAccessIssue]
    cls._repr_html_ = _result_html  # pyright: ignore[reportAttributeAccessIssue]
    return export.register_namedtuple_serialization(cls, serialized_name=_serialized_name(cls))


def _result_repr(result: Any) -> str:
    """Fields with short arrays as numbers, others by dtype and shape."""
    fields = zip(result._fields, result, strict=True)
    return f"{type(result).__name__}({', '.join(f'{k}={_short(v)}' for k, v in fields)})"


def _short(value: Any) -> str:
    if isinstance(value, (list, tuple, dict)) and len(value) > SHOWN:
        return f"<{type(value).__name__} of {len(value)}>"
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        ends = "[]" if isinstance(value, list) else "()"
        return ends[0] + ", ".join(map(_short, value)) + ends[1]
    if not isinstance(value, (jax.Array, np.ndarray)):
        return repr(value)
    if is_concrete(value) and value.size <= SHOWN and _is_numpy(value.dtype):
        with contextlib.suppress(RuntimeError):  # deleted, or not all on this host
            return " ".join(np.array2string(np.asarray(value), separator=", ").split())
    return describe(value)


def _result_html(result: Any) -> str:
    """Scalars as they are, arrays by dtype and shape; without what is None or a status of 0."""
    rows = {}
    for name, value in zip(result._fields, result, strict=True):
        known = is_concrete(value)
        if value is None or (name == "status" and known and not np.any(value)):
            continue
        rows[name] = np.asarray(value).item() if known and np.ndim(value) == 0 else describe(value)
    return card(type(result).__name__, rows)


VALUES = (jax.Array, np.ndarray, np.generic, int, float, complex)


def is_concrete(*trees: Any) -> bool:
    """True when every leaf holds a value that can be looked at (no tracer, no placeholder)."""
    flat = all(map(_holds_value, map(type, trees)))  # at every eager call: no generator
    return flat or all(map(_holds_value, map(type, jax.tree.leaves(trees))))


@functools.cache
def _holds_value(kind: type) -> bool:
    return issubclass(kind, VALUES) and not issubclass(kind, Tracer)


def value_of(x: Any) -> Any:
    """The array whose derivative a tracer of an eager call follows; otherwise x."""
    known = x.to_concrete_value() if isinstance(x, Tracer) else None
    return x if known is None else known


def describe(array: Any) -> str:
    """`float32[3,4]` for anything with dtype and shape; the bare value's type name otherwise."""
    dtype, shape = getattr(array, "dtype", None), getattr(array, "shape", None)
    if dtype is None or shape is None:
        return type(array).__name__
    if not _is_numpy(dtype):
        return str(dtype)
    return f"{np.dtype(dtype).name}[{','.join(map(str, shape))}]"


def _is_numpy(dtype: Any) -> bool:
    try:
        np.dtype(dtype)
    except TypeError:
        return False
    return True
