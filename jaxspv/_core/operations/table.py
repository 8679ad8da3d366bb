"""The forms of an operation, the choice among them, the types of their results."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from ..compat import kernels_refused
from ..platforms import BACKENDS, PLATFORM_OF, Backend, inside, situation
from .call import Call, Form, Refuse, Types, never, structs
from .plan import Plan


class Table:
    """The forms of an operation in their order; of one backend the first that serves is taken.

    Forms for GPUs are asked where kernels run at all (`compat.kernels_refused`).
    """

    def __init__(self, name: str, internal: bool):
        self.name, self.internal = name, internal
        self._forms: list[Form] = []
        self._gpu_modules: tuple[str, ...] = ()

    def register(
        self,
        name: str,
        *,
        backend: Backend = "xla",
        refuse: Refuse = never,
        batched: Callable[..., Any] | Literal["map", "vmap"] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator adding a form; of one backend the first registered is preferred.

        `batched(axis_size, in_batched, *operands, **static)` gives the result of a vmap, every leaf
        with a leading axis; "map": `lax.map` over the lanes; "vmap": JAX's own batching. Without
        it: of "xla" "vmap", of "cpu" "map", of "pallas" what the form in XLA does.
        """

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

    def plan(
        self,
        *operands: Any,
        backend: Backend | None = None,
        method: str | None = None,
        platform: str | None = None,
        **static: Any,
    ) -> Plan:
        """Chooses, for each backend, the first form that does not refuse.

        With `platform` it asks only the forms for that one, and all where these refuse.

        Raises:
            ValueError: `backend` or `method` names nothing that exists.
            NotImplementedError: every form refuses; says why for each.
        """
        if backend is not None and backend not in BACKENDS:
            raise ValueError(f"`backend` must be one of {BACKENDS} or None; got {backend!r}.")
        impls = self.impls if platform in (None, "cuda") else self._forms
        if method is not None and method not in (impl.name for impl in impls):
            if method not in (names := sorted({impl.name for impl in self.impls})):
                raise ValueError(f"`method` must be one of {names}; got {method!r}.")
        allowed = situation().allowed if backend is None else (backend,)

        def refusal(impl):
            if impl.backend not in allowed:
                return f"backend={backend or allowed[-1]!r} was asked for"
            if method not in (None, impl.name):
                return f"method={method!r} was asked for"
            reason = impl.refuse(*operands, **static)
            return reason or (kernels_refused() if impl.backend == "pallas" else None)

        chosen, refused = {}, []
        for impl in sorted(impls, key=lambda impl: BACKENDS.index(impl.backend)):
            runs_on = PLATFORM_OF.get(impl.backend, platform)
            if impl.backend in chosen or platform not in (None, runs_on):
                continue
            if reason := refusal(impl):
                refused.append((impl, reason))
            else:
                chosen[impl.backend] = impl
        if chosen:
            return Plan(self.name, (*chosen.values(),), tuple(refused), internal=self.internal)
        if platform is not None:  # on no platform at last, for CPUs before GPUs
            how = {"backend": backend, "method": method}
            then = "cpu" if platform == "other" else None
            return self.plan(*operands, platform=then, **how, **static)
        listing = "\n  ".join(f"{impl}: {why}" for impl, why in refused)
        raise NotImplementedError(f"no implementation of `{self.name}`:\n  {listing}")


@functools.lru_cache(maxsize=4096)
def results_of(op: Any, call: Call, types: Types, x64: bool) -> tuple[Any, Types]:
    """The structure and the types of an operation's results."""
    del x64  # part of the key

    plan = op.planned(call, types, "other")
    result = None if op.types is None else on_types(op.types, call, types)
    if result is None:
        impl = plan.chosen[-1]  # the form in XLA, if it did not refuse
        where = call.where.on(PLATFORM_OF.get(impl.backend, "other"))

        def traced(*operands, **static):
            return jax.eval_shape(functools.partial(impl.run, **static), *operands)

        result = on_types(traced, call.replace(where=where), types)
    leaves, structure = jax.tree.flatten(result)
    return structure, tuple((tuple(v.shape), jnp.dtype(v.dtype)) for v in leaves)


def on_types(fn: Callable[..., Any], call: Call, types: Types) -> Any:
    """`fn(*operands, **static)` for operands that only have shapes and dtypes."""
    found = []

    def on_leaves(*leaves):
        with inside(call.where):
            found.append(fn(*call.tree.unflatten(leaves), **dict(call.static)))

    jax.eval_shape(on_leaves, *structs(types))
    return found[0]
