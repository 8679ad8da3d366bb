"""Operations: tables of implementations, the choice among them, and the layers above it.

An operation checks its arguments and then calls `Op.__call__`: custom_jvp, then for each platform
that the program may be lowered for the implementation that serves the call (`platforms.branch`),
with its batch rule. The choice is made while tracing, from types, shapes, dtypes and static
arguments.

Before all that a public function is `overloadable`: types of operands that it does not know, such
as graphs spread over devices, bring a function of their own.
"""

from __future__ import annotations

import dataclasses
import functools
import html
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import jax

from .batching import one_by_one, vmapped
from .compilation import compiled_for, eager_operands, inlined, there
from .derivatives.tangents import instantiate, is_inexact, split
from .eager.numbers import numbered, whole
from .platforms import (
    BACKENDS,
    EVERYWHERE,
    WORDS,
    Backend,
    Form,
    Situation,
    branch,
    inside,
    is_recording,
    needed,
    record,
    situation,
    using,
)

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Impl(Form):
    """A form of an operation: `run(*operands, **static)`, `batched` likewise.

    Attributes:
        refuse: `refuse(*operands, **static)`: why it cannot serve a call (a sentence), or None.
    """

    refuse: Callable[..., str | None] = lambda *operands, **static: None


@dataclasses.dataclass(frozen=True)
class Plan:
    """The result of `explain`: which implementation runs on which platform, and why not others.

    Attributes:
        op: name of the operation.
        chosen: at most one implementation for each backend: a Pallas one for NVIDIA GPUs, one for
            CPUs, and the XLA one for every platform that is left.
        refused: (implementation, reason) of those passed over before the chosen ones.
        notes: what `prepare` would gain, warnings.
        inside: (implementation, plans of the choices made within it), of those that make any.
        platforms: "cuda", "cpu", "other": those that the plan is for.
    """

    op: str
    chosen: tuple[Any, ...]
    refused: tuple[tuple[Impl, str], ...] = ()
    notes: tuple[str, ...] = ()
    inside: tuple[tuple[Any, tuple[Plan, ...]], ...] = ()
    platforms: frozenset[str] = EVERYWHERE

    def on(self, platform: str) -> Any:
        """The implementation that runs on a platform: "cuda", "cpu", or any other; None: none."""
        forms = {impl.backend: impl for impl in self.chosen}
        platform = platform if platform in WORDS else "other"
        backend = needed(forms, frozenset({platform})).get(platform)
        return None if backend is None else forms[backend]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        """The HTML representation for notebooks: the text in a `<pre>` block."""
        return f"<pre>{html.escape(str(self))}</pre>"

    def _lines(self) -> list[str]:
        places: dict[Any, list[str]] = {}
        for platform in (p for p in WORDS if p in self.platforms):
            if (impl := self.on(platform)) is not None:
                places.setdefault(impl, []).append(WORDS[platform])
        if len(places) == 1 and len(next(iter(places.values()))) == len(self.platforms):
            text = str(next(iter(places)))
        else:
            special = {impl: " and ".join(w) for impl, w in places.items() if impl.backend != "xla"}
            parts = [f"{impl} on {words}" for impl, words in special.items()]
            parts += [f"{impl} elsewhere" for impl in places if impl not in special]
            text = ", ".join(parts)
        lines = [f"{self.op}: {text}" if text else f"{self.op}: one program of XLA, no choice"]
        lines += [f"  not {impl}: {reason}" for impl, reason in self.refused]
        for impl, plans in self.inside:
            inner = [line for plan in plans for line in plan._lines()]
            title = f"  inside {impl}:" if impl is not None else None
            lines += [title, *(f"    {line}" for line in inner)] if title else inner
        return [*lines, *(f"  note: {note}" for note in self.notes)]


class Op:
    """One operation: the table of its implementations, its tangent, and the order of layers.

    Args:
        name: shown in messages.
        tangent: `tangent(primals, tangents, result, **static) -> result tangent`, built only from
            operations that transpose. Leaves of `tangents` that are `SymbolicZero` are known to be
            zero; leaves of integer results take `SymbolicZero` or float0. None: every result is an
            integer or a boolean, and has float0.
    """

    def __init__(self, name: str, tangent: Callable[..., Any] | None = None):
        self.name = name
        self.tangent = tangent
        self.impls: list[Impl] = []

    def register(
        self,
        name: str,
        *,
        backend: Backend = "xla",
        refuse: Callable[..., str | None] = lambda *operands, **static: None,
        batched: Callable[..., Any] | Literal["map"] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator adding an implementation; of one backend the first registered is preferred.

        `batched(axis_size, in_batched, *operands, **static)` gives the result of a vmap, every leaf
        with a leading axis; "map": `lax.map` over the lanes. Without it: of "xla" JAX's own
        batching, of "cpu" "map", of "pallas" what the XLA implementation does.
        """

        def add(run):
            self.impls.append(Impl(name, backend, run, batched, refuse))
            return run

        return add

    def plan(
        self,
        *operands: Any,
        backend: Backend | None = None,
        method: str | None = None,
        **static: Any,
    ) -> Plan:
        """Chooses, for each backend, the first implementation that does not refuse.

        Raises:
            ValueError: `backend` or `method` names nothing that exists.
            NotImplementedError: every implementation refuses; says why for each.
        """
        if backend is not None and backend not in BACKENDS:
            raise ValueError(f"`backend` must be one of {BACKENDS} or None; got {backend!r}.")
        names = [impl.name for impl in self.impls]
        if method is not None and method not in names:
            raise ValueError(f"`method` must be one of {sorted(set(names))}; got {method!r}.")
        allowed = situation().allowed if backend is None else (backend,)
        chosen, refused = [], []
        for kind in BACKENDS:
            for impl in (i for i in self.impls if i.backend == kind):
                if kind not in allowed:
                    reason = f"backend={backend or allowed[-1]!r} was asked for"
                elif method is not None and impl.name != method:
                    reason = f"method={method!r} was asked for"
                else:
                    reason = impl.refuse(*operands, **static)
                if reason is None:
                    chosen.append(impl)
                    break
                refused.append((impl, reason))
        if not chosen:
            listing = "\n  ".join(f"{impl}: {why}" for impl, why in refused)
            raise NotImplementedError(f"no implementation of `{self.name}`:\n  {listing}")
        return Plan(self.name, tuple(chosen), tuple(refused))

    def __call__(
        self,
        *operands: Any,
        backend: Backend | None = None,
        method: str | None = None,
        **static: Any,
    ) -> Any:
        """Runs the operation through its layers; eagerly as a program of its own."""
        apart = None if is_recording() else eager_operands(operands)
        if apart is None:
            return self._traced(operands, backend, method, static)
        how = (backend, method, tuple(static.items()))
        where = there(situation(), apart.platform)
        leaves = apart.leaves if apart.platform == "cpu" else numbered(apart.leaves)
        return _program(self, len(self.impls), apart.tree, where, how)(*leaves)

    def _traced(self, operands, backend, method, static):
        plan = self.plan(*operands, backend=backend, method=method, **static)
        where = situation()
        if len(where.platforms) == 1 and plan.on(platform := next(iter(where.platforms))) is None:
            only = " and ".join(f"backend={impl.backend!r}" for impl in plan.chosen)
            raise NotImplementedError(
                f"`{self.name}` was asked for with {only}, which runs on "
                f"{' and '.join(WORDS[p] for p in sorted(_served(plan)))} only; the operands "
                f"are on {platform}."
            )
        if backend is not None:
            with using(backend):
                where = where._replace(allowed=situation().allowed)
        return self._layers(plan, where, backend, method, static)(*operands)

    def _layers(self, plan, where, backend, method, static):
        forms = {i.backend: _form(i, plan, static) for i in plan.chosen}

        def run(*operands):
            with record(self.name, {i.backend: i for i in plan.chosen}, plan), inside(where):
                return branch(self.name, forms, operands)

        call = jax.custom_jvp(run)
        call.defjvp(self._jvp_rule(where, backend, method, static), symbolic_zeros=True)
        return call

    def _jvp_rule(self, where, backend, method, static):
        def rule(primals, tangents):
            with inside(where):
                result = self(*primals, backend=backend, method=method, **static)
                return result, instantiate(result, self._push(primals, tangents, result, static))

        return rule

    def _push(self, primals, tangents, result, static):
        """Tangents of the floating-point leaves of `result`, None for the rest; in one program."""
        if not any(map(is_inexact, jax.tree.leaves(result))):
            return jax.tree.map(lambda _: None, result)
        assert self.tangent is not None, self.name
        arrays, joined, shape = split(tangents)
        where = situation()

        def push(primals, arrays, result):
            assert self.tangent is not None
            with inside(where):
                out = self.tangent(primals, joined(arrays), result, **static)
            return jax.tree.map(
                lambda v, t: t if is_inexact(v) else None, result, instantiate(result, out)
            )

        key = (self.tangent, shape, tuple(sorted(static.items())), where)
        # Without the options of `jitted`: under an eager `jax.grad` this is a nested jit to JAX.
        run = push if is_recording() else inlined(push, key)
        return run(primals, arrays, result)


@functools.lru_cache(maxsize=1024)
def _program(op: Op, registered: int, tree: Any, where: Situation, how: Any) -> Callable[..., Any]:
    """The compiled function of eager calls whose operands have this structure; takes the leaves.

    JAX caches one program for each combination of dtypes and shapes, so the plan is made once.
    """
    del registered  # an implementation more is another plan
    backend, method, static = how

    def run(*leaves):
        operands = jax.tree.unflatten(tree, map(whole, leaves))
        return op._traced(operands, backend, method, dict(static))

    run.__name__ = op.name.replace(" ", "_")  # in profiles
    return compiled_for(where, run)


def _served(plan: Plan) -> set[str]:
    return {p for p in EVERYWHERE if plan.on(p) is not None}


def _form(impl: Impl, plan: Plan, static: dict[str, Any]) -> Form:
    """The implementation for these static arguments, and its batch rule."""

    def run(*operands):
        return impl.run(*operands, **static)

    def traced_once(*operands):
        """Traced once for each combination of types."""
        if is_recording():
            return run(*operands)
        key = (impl, tuple(sorted(static.items())), situation())
        return inlined(run, key)(*operands)

    rule = impl.batched
    if rule is None and impl.backend == "pallas":
        rule = _rule_of_xla(impl, plan)
    batched = functools.partial(_batched, rule, static) if callable(rule) else rule
    return Form(impl.name, impl.backend, traced_once, batched)


def _batched(rule, static, axis_size, in_batched, *operands):
    return rule(axis_size, in_batched, *operands, **static)


def _rule_of_xla(kernel: Impl, plan: Plan) -> Callable[..., Any]:
    """The batching rule of a kernel without one of its own: that of the XLA implementation."""
    xla = next((impl for impl in plan.chosen if impl.backend == "xla"), None)

    def rule(axis_size, in_batched, *operands, **static):
        if xla is None:
            raise NotImplementedError(f"{kernel} cannot be batched by vmap.")
        run = functools.partial(xla.run, **static)
        with record(f"{plan.op} under vmap", {"xla": xla}):
            if callable(xla.batched):
                return xla.batched(axis_size, in_batched, *operands, **static)
            usual = vmapped if xla.batched is None else one_by_one
            return usual(run, axis_size, in_batched, *operands)

    return rule


# ---- Types that bring functions of their own ----


def overloadable(fn: _F) -> _F:
    """Decorator of a public function: a call with an operand of a type that `overload` named goes
    to what was registered for it. Asked are the first two positional operands and the named ones.
    """
    table: dict[type, Callable[..., Any]] = {}

    @functools.wraps(fn)
    def call(*args, **kwargs):
        for operand in (*args[:2], *kwargs.values()):
            own = table.get(type(operand))
            if own is not None:
                return own(*args, **kwargs)
        return fn(*args, **kwargs)

    call.overloads = table  # pyright: ignore[reportAttributeAccessIssue]
    return cast(_F, call)


def overload(fn: Callable[..., Any], kind: type) -> Callable[[_F], _F]:
    """Decorator: what `fn`, which is `overloadable`, does with operands of this type."""

    def add(own: _F) -> _F:
        fn.overloads[kind] = own  # pyright: ignore[reportFunctionMemberAccess]
        return own

    return add
