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
            self._forms.append(Form(name, backend, run, batched, refuse))
            results_of.cache_clear()
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
            names = sorted({impl.name for impl in self.impls})
            if method not in names:
                raise ValueError(f"`method` must be one of {names}; got {method!r}.")
        allowed = situation().allowed if backend is None else (backend,)
        chosen, refused = [], []
        asked_for = [k for k in BACKENDS if platform in (None, PLATFORM_OF.get(k, platform))]
        for kind in asked_for:
            for impl in (i for i in impls if i.backend == kind):
                if kind not in allowed:
                    reason = f"backend={backend or allowed[-1]!r} was asked for"
                elif method is not None and impl.name != method:
                    reason = f"method={method!r} was asked for"
                else:
                    reason = impl.refuse(*operands, **static)
                    if kind == "pallas":
                        reason = reason or kernels_refused()
                if reason is None:
                    chosen.append(impl)
                    break
                refused.append((impl, reason))
        if not chosen and platform is not None:  # on no platform at last, for CPUs before GPUs
            then = "cpu" if platform == "other" else None
            how = {"backend": backend, "method": method, "platform": then}
            return self.plan(*operands, **how, **static)
        if not chosen:
            listing = "\n  ".join(f"{impl}: {why}" for impl, why in refused)
            raise NotImplementedError(f"no implementation of `{self.name}`:\n  {listing}")
        return Plan(self.name, tuple(chosen), tuple(refused), internal=self.internal)


@functools.lru_cache(maxsize=4096)
def results_of(op: Any, call: Call, types: Types, x64: bool) -> tuple[Any, Types]:
    """The structure and the types of an operation's results."""
    del x64  # part of the key

    def both(*operands, **static):
        how = {"backend": call.backend, "method": call.method, "platform": "other"}
        plan = op.plan(*operands, **how, **static)
        return plan, None if op.types is None else op.types(*operands, **static)

    plan, result = asked(both, call, types)
    if result is None:
        impl = plan.chosen[-1]  # the form in XLA, if it did not refuse

        def run(*leaves):
            platform = PLATFORM_OF.get(impl.backend, "other")
            with inside(call.where.on(platform)):
                return impl.run(*jax.tree.unflatten(call.tree, leaves), **dict(call.static))

        result = jax.eval_shape(run, *structs(types))
    leaves, structure = jax.tree.flatten(result)
    return structure, tuple((tuple(v.shape), jnp.dtype(v.dtype)) for v in leaves)


def asked(fn: Callable[..., Any], call: Call, types: Types) -> Any:
    """`fn(*operands, **static)` for operands that only have shapes and dtypes."""
    found = []

    def ask(*leaves):
        with inside(call.where):
            found.append(fn(*jax.tree.unflatten(call.tree, leaves), **dict(call.static)))

    jax.eval_shape(ask, *structs(types))
    return found[0]
