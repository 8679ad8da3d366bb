"""Which implementation runs, and the layers above it: custom_jvp, custom_vmap, choice, kernel.

An operation checks its arguments and then calls `Op.__call__`. The choice is made while tracing,
from types, shapes, dtypes and static arguments, and for the platform that is lowered for.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from .batching import with_batch_rule
from .compilation import inlined, is_eager, jitted, on_gpu

Backend = Literal["xla", "pallas"]
BACKENDS: tuple[Backend, ...] = ("pallas", "xla")  # fastest first
_ASKED: contextvars.ContextVar[Backend | None] = contextvars.ContextVar("backend", default=None)
PALLAS_PLATFORM = "cuda"


@contextlib.contextmanager
def using(backend: Backend | None) -> Iterator[None]:
    """Inside, operations that name no backend are traced for this one."""
    token = _ASKED.set(backend)
    try:
        yield
    finally:
        _ASKED.reset(token)


def asked() -> Backend | None:
    """The backend of `using` around this, if any."""
    return _ASKED.get()


@dataclasses.dataclass(frozen=True)
class Impl:
    """One way to run an operation.

    Attributes:
        name: the method, e.g. "scatter", "delta_stepping".
        backend: "xla" runs everywhere; "pallas" where the program is lowered for an NVIDIA GPU.
        run: `run(*operands, **static) -> result`, traceable.
        refuse: why it cannot serve a call (a sentence), or None.
        batched: `batched(axis_size, in_batched, *operands, **static) -> (result, out_batched)`,
            what vmap does; None: JAX's own batching of `run` for "xla", a refusal for "pallas".
    """

    name: str
    backend: Backend
    run: Callable[..., Any]
    refuse: Callable[..., str | None]
    batched: Callable[..., Any] | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
    """What runs, and why not the rest: what `explain` shows.

    Attributes:
        op: name of the operation.
        chosen: implementations in the order of preference: a Pallas one first, if any, for NVIDIA
            GPUs, and the XLA one for every other platform and for vmap.
        refused: (implementation, reason) of those passed over before the last chosen one.
        notes: what `prepare` would gain, warnings.
    """

    op: str
    chosen: tuple[Impl, ...]
    refused: tuple[tuple[Impl, str], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        def label(impl):
            return f"{impl.backend}/{impl.name}"

        lines = []
        if len(self.chosen) == 2:
            lines.append(
                f"{self.op}: {label(self.chosen[0])} on NVIDIA GPUs, "
                f"{label(self.chosen[1])} elsewhere and under vmap"
            )
        else:
            lines += [f"{self.op}: {label(impl)}" for impl in self.chosen]
        lines += [f"  not {label(impl)}: {reason}" for impl, reason in self.refused]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


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
        batched: Callable[..., Any] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator adding an implementation; of one backend the first registered is preferred."""

        def add(run):
            self.impls.append(Impl(name, backend, run, refuse, batched))
            return run

        return add

    def plan(
        self,
        *operands: Any,
        backend: Backend | None = None,
        method: str | None = None,
        notes: tuple[str, ...] = (),
        **static: Any,
    ) -> Plan:
        """Chooses: the first Pallas implementation that does not refuse, and the first XLA one.

        Raises:
            ValueError: `backend` or `method` names nothing that exists.
            NotImplementedError: every implementation refuses; says why for each.
        """
        backend = _ASKED.get() if backend is None else backend
        if backend is not None and backend not in BACKENDS:
            raise ValueError(f"`backend` must be one of {BACKENDS} or None; got {backend!r}.")
        names = [impl.name for impl in self.impls]
        if method is not None and method not in names:
            raise ValueError(f"`method` must be one of {sorted(set(names))}; got {method!r}.")
        chosen, refused = [], []
        for kind in BACKENDS:
            for impl in (i for i in self.impls if i.backend == kind):
                reason = self._out_of_reach(impl, backend, method)
                reason = reason or impl.refuse(*operands, **static)
                if reason is None:
                    chosen.append(impl)
                    break
                refused.append((impl, reason))
        if not chosen:
            listing = "\n  ".join(f"{i.backend}/{i.name}: {why}" for i, why in refused)
            raise NotImplementedError(f"no implementation of `{self.name}`:\n  {listing}")
        return Plan(self.name, tuple(chosen), tuple(refused), notes)

    @staticmethod
    def _out_of_reach(impl: Impl, backend: Backend | None, method: str | None) -> str | None:
        if backend is not None and impl.backend != backend:
            return f"backend={backend!r} was asked for"
        if method is not None and impl.name != method:
            return f"method={method!r} was asked for"
        return None

    def __call__(
        self,
        *operands: Any,
        backend: Backend | None = None,
        method: str | None = None,
        **static: Any,
    ) -> Any:
        """Runs the operation through its layers; under a jit of its own where nothing is traced."""
        plan = self.plan(*operands, backend=backend, method=method, **static)
        call = self._layers(plan, backend, method, static)
        if is_eager(*operands):
            if plan.chosen[-1].backend == "pallas" and not on_gpu(operands):
                raise NotImplementedError(
                    f"`{self.name}` was asked for with backend='pallas', which runs on NVIDIA GPUs "
                    "only."
                )
            key = (self.name, backend, method, tuple(sorted(static.items())), plan.chosen)
            call = jitted(call, key, operands)
        return call(*operands)

    def _layers(self, plan, backend, method, static):
        call = jax.custom_jvp(_by_platform(plan, static))
        call.defjvp(self._jvp_rule(backend, method, static), symbolic_zeros=True)
        return call

    def _jvp_rule(self, backend, method, static):
        def rule(primals, tangents):
            result = self(*primals, backend=backend, method=method, **static)
            if not any(jnp.issubdtype(v.dtype, jnp.inexact) for v in jax.tree.leaves(result)):
                return result, jax.tree.map(lambda v: np.zeros(v.shape, jax.dtypes.float0), result)
            assert self.tangent is not None, self.name
            with using(backend) if backend == "xla" else contextlib.nullcontext():
                return result, _instantiate(result, self._push(primals, tangents, result, static))

        return rule

    def _push(self, primals, tangents, result, static):
        """The tangent of what of `result` is inexact, None for the rest; eagerly in one program."""
        leaves, tree = jax.tree.flatten(tangents, is_leaf=_is_symbolic)
        still = tuple(leaf.aval if _is_symbolic(leaf) else None for leaf in leaves)
        operands = primals, [leaf for leaf in leaves if not _is_symbolic(leaf)], result

        def push(primals, moving, result):
            moving = iter(moving)
            leaves = [next(moving) if aval is None else SymbolicZero(aval) for aval in still]
            assert self.tangent is not None
            out = self.tangent(primals, jax.tree.unflatten(tree, leaves), result, **static)
            return jax.tree.map(
                lambda v, t: t if jnp.issubdtype(v.dtype, jnp.inexact) else None,
                result,
                _instantiate(result, out),
            )

        key = (self.tangent, tree, still, tuple(sorted(static.items())), _ASKED.get())
        # Without the options of `jitted`: under an eager `jax.grad` this is a nested jit to JAX.
        return inlined(push, key)(*operands)


def _by_platform(plan: Plan, static: dict[str, Any]) -> Callable[..., Any]:
    """The batching layer over the choice by the platform that is lowered for."""
    impls = {impl.backend: impl for impl in plan.chosen}
    run = {impl.backend: _traced_once(impl, static) for impl in plan.chosen}
    if "pallas" not in impls:
        return _batchable(impls["xla"], run["xla"], static)
    pallas = impls["pallas"]

    def choose(*operands):
        kernel = {PALLAS_PLATFORM: run["pallas"]}
        if "xla" not in impls:  # lowering for another platform raises
            return lax.platform_dependent(*operands, **kernel)
        return lax.platform_dependent(*operands, default=run["xla"], **kernel)

    return _batchable(impls.get("xla", pallas), choose, static, pallas.batched)


def _traced_once(impl, static):
    """The implementation as a function that is traced once for all operands of the same types."""
    key = (impl, tuple(sorted(static.items())), _ASKED.get())
    return inlined(functools.partial(impl.run, **static), key)


def _batchable(impl, run, static, batched=None):
    """`run` with the batch rule of its implementations; JAX's own batching of the XLA one else."""
    rule = batched or impl.batched
    if rule is None and impl.backend == "xla":

        def rule(axis_size, in_batched, *operands, **static):
            axes = jax.tree.map(lambda b: 0 if b else None, in_batched)
            result = jax.vmap(
                lambda *o: impl.run(*o, **static), in_axes=tuple(axes), axis_size=axis_size
            )(*operands)
            return result, jax.tree.map(lambda _: True, result)

    def batch_rule(axis_size, in_batched, *operands):
        if rule is None:
            raise NotImplementedError(f"{impl.backend}/{impl.name} cannot be batched by vmap.")
        return rule(axis_size, in_batched, *operands, **static)

    return with_batch_rule(run, batch_rule)


def is_zero(tangent: Any) -> bool:
    """Whether every leaf of a tangent is known to be zero (or has no tangent at all)."""
    return all(_is_zero_leaf(leaf) for leaf in _leaves(tangent))


def dense_tangent(tangent: Any) -> Any:
    """A tangent with its symbolic zeros made into arrays of zeros."""
    return jax.tree.map(_materialise, tangent, is_leaf=_is_symbolic)


def jvp_of_moving(
    fn: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, Any]:
    """`jax.jvp(fn, primals, tangents)`, differentiated only in the primals that move.

    Args:
        fn: `fn(*primals) -> result`, a pytree of floating arrays.
        primals: pytrees.
        tangents: one for each, of which any may be symbolic zeros: those cost nothing.
    """
    live = [not is_zero(t) for t in tangents]

    def of_live(*values):
        given = iter(values)
        return fn(*(next(given) if on else v for on, v in zip(live, primals, strict=True)))

    values = tuple(v for v, on in zip(primals, live, strict=True) if on)
    if not values:
        result = fn(*primals)
        return result, jax.tree.map(jnp.zeros_like, result)
    dots = tuple(dense_tangent(t) for t, on in zip(tangents, live, strict=True) if on)
    return jax.jvp(of_live, values, dots)


def _is_symbolic(leaf):
    return isinstance(leaf, SymbolicZero)


def _leaves(tangent):
    return jax.tree.leaves(tangent, is_leaf=_is_symbolic)


def _is_zero_leaf(leaf):
    return _is_symbolic(leaf) or getattr(leaf, "dtype", None) == jax.dtypes.float0


def _materialise(leaf):
    if not _is_symbolic(leaf):
        return leaf
    if leaf.dtype == jax.dtypes.float0:
        return np.zeros(leaf.shape, jax.dtypes.float0)
    return jnp.zeros(leaf.shape, leaf.dtype)


def _instantiate(result: Any, tangent: Any) -> Any:
    """`tangent` as JAX wants it: float0 for what has no tangent, arrays for the rest."""

    def leaf(value, t):
        if value is None:
            return None
        if not jnp.issubdtype(value.dtype, jnp.inexact):
            return np.zeros(value.shape, jax.dtypes.float0)
        if t is None or _is_zero_leaf(t):
            return jnp.zeros(value.shape, value.dtype)
        return t

    return jax.tree.map(leaf, result, tangent, is_leaf=lambda x: x is None or _is_symbolic(x))
