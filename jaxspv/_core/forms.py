"""Calls of an operation, its forms, the choice among them, plans; functions that operands bring."""

from __future__ import annotations

import dataclasses
import functools
import html
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, cast

import jax

from .compat import kernels_refused
from .platforms import ASKED, BACKENDS, PLATFORM_OF, WORDS, Backend, Situation, inside, situation

_F = TypeVar("_F", bound=Callable[..., Any])

ON_TUPLES: dict[str, Callable[..., Any]] = {}  # the functions on values that are tuples
Types = tuple[tuple[tuple[int, ...], Any], ...]  # (shape, dtype) of every leaf


@dataclasses.dataclass(frozen=True)
class Form:
    """One way to compute an operation.

    Attributes:
        name: the method, e.g. "scatter", "delta_stepping".
        backend: "xla" runs everywhere, "cpu" where the program is lowered for a CPU, "pallas" for
            an NVIDIA GPU.
        run: `run(*operands, **static) -> result`, traceable.
        batched: `batched(axis_size, in_batched, *operands, **static) -> result`, every leaf with a
            leading axis: what vmap does. "vmap": JAX's own batching, the default of "xla". "map":
            `lax.map` over the lanes, that of "cpu". None, that of "pallas": it refuses.
        refuse: `refuse(*operands, **static)`: why it cannot serve a call (a sentence), or None.
            Operands have shapes and dtypes alone.
    """

    name: str
    backend: Backend
    run: Callable[..., Any]
    batched: Callable[..., Any] | Literal["map", "vmap"] | None
    refuse: Callable[..., str | None]

    def __str__(self) -> str:
        return f"{self.backend}/{self.name}"


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """The static part of a call: the only parameter of its equation. Made by `call_of`, so that
    equal ones are one object, compared by identity; no tuple, which JAX would take apart.

    Attributes:
        tree: the pytree structure of the operands.
        static: named options of the operation.
        backend, method: what was asked for; None: the fastest that serves.
        where: the situation of calls in its forms and derivatives, for every platform: by
            `backend`.
        lanes: an entry for each `vmap` around the call, the innermost first: its size, and which
            arrays have a leading axis for it.
    """

    tree: Any
    static: tuple[tuple[str, Any], ...]
    backend: Backend | None
    method: str | None
    where: Situation
    lanes: tuple[tuple[int, tuple[bool, ...]], ...]

    def __repr__(self) -> str:
        asked = *self.static, ("backend", self.backend), ("method", self.method)
        given = [f"{name}={value}" for name, value in asked if value not in (None, False)]
        given += [f"lanes={len(self.lanes)}"] if self.lanes else []
        return f"({', '.join(given)})"

    def replace(self, **changes: Any) -> Call:
        """The same call but for some attributes."""
        return _call(*(vars(self) | changes).values())

    def single(self, types: Types) -> Types:
        """Types of the arrays without the axes of `lanes`."""
        axes = [sum(on[k] for _, on in self.lanes) for k in range(len(types))]
        return tuple((s[k:], dtype) for (s, dtype), k in zip(types, axes, strict=True))


_call = functools.lru_cache(maxsize=4096)(Call)


def call_of(tree: Any, static: dict[str, Any], backend: Any = None, method: Any = None) -> Call:
    """The call with these options in the situation of the current trace. Raises TypeError: an
    option is an array, a list, ...; names it."""
    where = situation().everywhere().taking(backend)
    try:
        return _call(tree, tuple(sorted(static.items())), backend, method, where, ())
    except TypeError:
        for name, value in {"backend": backend, "method": method, **static}.items():
            try:
                hash(value)
            except TypeError:
                kind = type(value).__name__
                raise TypeError(f"`{name}` must be a single value of Python; got {kind}.") from None
        raise


def structs(types: Types) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]


def types_of(leaves: Sequence[Any]) -> Types:
    return tuple([(x.shape, x.dtype) for x in leaves])


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
        internal: whether the operation is a step of others.
    """

    op: str
    chosen: tuple[Any, ...]
    refused: tuple[tuple[Any, str], ...] = ()
    notes: tuple[str, ...] = ()
    inside: tuple[tuple[Any, tuple[Plan, ...]], ...] = ()
    internal: bool = False

    def on(self, platform: str) -> Any:
        """The implementation that runs on a platform: "cuda", "cpu", or any other; None: none."""
        served = (i for i in self.chosen if PLATFORM_OF.get(i.backend, platform) == platform)
        return next(served, None)  # the fastest first

    def __str__(self) -> str:
        parts = []
        for impl in self.chosen:  # that of XLA last
            platform = PLATFORM_OF.get(impl.backend)
            place = f" on {WORDS[platform]}" if platform else " elsewhere" if parts else ""
            parts.append(f"{impl}{place}")
        lines = [f"{self.op}: {', '.join(parts) or 'one program of XLA, no choice'}"]
        lines += [f"  not {impl}: {reason}" for impl, reason in self.refused]
        for impl, plans in self.inside:
            inner = [line for plan in plans for line in str(plan).splitlines()]
            title = f"  inside {impl}:"
            lines += inner if impl is None else [title, *(f"    {line}" for line in inner)]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """The HTML representation for notebooks: the text in a `<pre>` block."""
        return f"<pre>{html.escape(str(self))}</pre>"


class Table:
    """The forms of an operation in their order; of one backend the first that serves is taken.

    Forms for GPUs are asked where kernels run at all (`compat.kernels_refused`).
    """

    def __init__(self, name: str, internal: bool, advice: Callable[..., Any] | None):
        self.name, self.internal, self.advice = name, internal, advice
        self._forms: list[Form] = []
        self._gpu_modules: tuple[str, ...] = ()

    def register(
        self,
        name: str,
        *,
        backend: Backend = "xla",
        refuse: Callable[..., str | None] = lambda *operands, **static: None,
        batched: Callable[..., Any] | Literal["map", "vmap"] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator adding a `Form`; of one backend the first registered is preferred."""

        def add(run):
            how: Any = batched or {"xla": "vmap", "cpu": "map"}.get(backend)
            self._forms.append(Form(name, backend, run, how, refuse))
            return run

        return add

    def gpu_forms_in(self, module: str) -> None:
        """Its forms for GPUs are registered by a module, imported when a plan asks for them."""
        self._gpu_modules = (*self._gpu_modules, module)

    @property
    def impls(self) -> list[Form]:
        """All forms, those for GPUs too."""
        for module in self._gpu_modules:
            importlib.import_module(module)
        self._gpu_modules = ()
        return self._forms

    def plan(self, call: Call, platform: str | None, *operands: Any, **static: Any) -> Plan:
        """Chooses, for each backend, the first form that does not refuse; operands are those of one
        lane. With `platform` only one: the fastest for it, or one for another if all these refuse.

        Raises:
            ValueError: `backend` or `method` names nothing that exists.
            NotImplementedError: every form refuses; says why for each.
        """
        backend, method = call.backend, call.method
        allowed = call.where.allowed if backend is None else (backend,)
        chosen, refused = {}, []
        for kind in ASKED[platform]:
            for impl in self.impls if kind == "pallas" else self._forms:
                if impl.backend != kind or kind in chosen:
                    continue
                if kind not in allowed:
                    reason = f"backend={backend or allowed[-1]!r} was asked for"
                elif method not in (None, impl.name):
                    reason = f"method={method!r} was asked for"
                elif call.lanes and impl.batched is None:
                    reason = "it cannot be batched by vmap"
                else:
                    reason = impl.refuse(*operands, **static)
                    reason = reason or (kernels_refused() if kind == "pallas" else None)
                if reason:
                    refused.append((impl, reason))
                else:
                    chosen[kind] = impl
            if chosen and platform is not None:
                break
        if chosen:
            notes = self.advice(*operands, **static) if self.advice and platform is None else ()
            found = (*chosen.values(),), tuple(refused), tuple(notes)
            return Plan(self.name, *found, internal=self.internal)
        if backend not in (None, *BACKENDS):
            raise ValueError(f"`backend` must be one of {BACKENDS} or None; got {backend!r}.")
        if method not in (None, *(names := sorted({impl.name for impl in self.impls}))):
            raise ValueError(f"`method` must be one of {names}; got {method!r}.")
        listing = "\n  ".join(f"{impl}: {why}" for impl, why in refused)
        raise NotImplementedError(f"no implementation of `{self.name}`:\n  {listing}")


def on_types(fn: Callable[..., Any], call: Call, types: Types) -> Any:
    """`fn(*operands, **static)` for operands that only have shapes and dtypes, without the axes of
    vmap."""
    found = []

    def on_leaves(*leaves):
        with inside(call.where):
            found.append(fn(*call.tree.unflatten(leaves), **dict(call.static)))

    jax.eval_shape(on_leaves, *structs(call.single(types)))
    return found[0]


def overloadable(fn: _F) -> _F:
    """Decorator of a public function: an operand that has `__jaxspv_functions__`, a table of
    functions by name, answers for itself. Asked are the first three operands and the named ones.
    """

    @functools.wraps(fn)
    def call(*args, **kwargs):
        for operand in (*args[:3], *kwargs.values()):
            if hasattr(type(operand), "__jaxspv_functions__"):  # else sparse objects explain: 1 us
                own = operand.__jaxspv_functions__
                if own is not None and fn.__name__ in own:
                    return own[fn.__name__](*args, **kwargs)
        return fn(*args, **kwargs)

    return cast(_F, call)
