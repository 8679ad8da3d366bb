"""The forms of an operation, the choice among them, and plans: what was chosen and why."""

from __future__ import annotations

import dataclasses
import html
import importlib
from collections.abc import Callable
from typing import Any, Literal

import jax

from ..compat import kernels_refused
from ..platforms import ASKED, BACKENDS, PLATFORM_OF, WORDS, Backend, inside
from .call import Call, Form, Types, structs


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
