"""Programs that an eager call will need, compiled side by side before the first of them runs."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import jax

MOST, THREADS = 512, 8
_DONE: collections.OrderedDict[Hashable, None] = collections.OrderedDict()


class Program(NamedTuple):
    """`fn(*args, **static)`, where `fn` is jitted."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    static: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it

    def __call__(self) -> Any:
        return self.fn(*self.args, **self.static)


def compile_together(
    name: Hashable, operands: Any, programs: Callable[[], Iterable[Program]]
) -> None:
    """Compiles what `programs()` lists, each in a thread; once for operands of the same types.

    JAX keeps them for the calls that follow. In another context than the default one (x64 in a
    `with`, say) those calls are compiled again: threads know nothing of it.
    """
    leaves, tree = jax.tree.flatten(operands)
    if not all(isinstance(leaf, jax.Array) for leaf in leaves):
        return
    key = (name, tree, *((leaf.shape, leaf.dtype) for leaf in leaves))
    if key in _DONE:
        return
    _DONE[key] = None
    while len(_DONE) > MOST:
        _DONE.popitem(last=False)
    # What is wrong with the operands is told by the call itself.
    with contextlib.suppress(Exception), concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(_compiled, {_types_of(program): program for program in programs()}.values()))


def _types_of(program: Program) -> Hashable:
    leaves, tree = jax.tree.flatten(program.args)
    types = (getattr(leaf, "shape", leaf) for leaf in leaves)
    return program.fn, tree, tuple(sorted(program.static.items())), *types


def _compiled(program: Program) -> None:
    program.fn.lower(*program.args, **program.static).compile()  # pyright: ignore
