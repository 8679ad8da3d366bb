"""The choice by platform: which form of a computation runs on the device it is lowered for.

A form is for NVIDIA GPUs ("pallas"), for CPUs ("cpu": loops that XLA compiles to native code) or
for every platform ("xla"). `choose` puts all forms that may run into the program, each as a branch
of its own; inside a branch, and in eager calls, the platform is known and nested choices take one.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import jax
from jax import lax
from jax.extend.core import get_opaque_trace_state
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from .batching import one_by_one, with_batch_rule

Backend = Literal["pallas", "cpu", "xla"]
BACKENDS: tuple[Backend, ...] = ("pallas", "cpu", "xla")  # fastest first
PLATFORM_OF: dict[str, str] = {"pallas": "cuda", "cpu": "cpu"}  # "xla" is for all there are
WORDS = {"cuda": "NVIDIA GPUs", "cpu": "CPUs", "other": "other platforms"}
EVERYWHERE = frozenset(WORDS)


class Situation(NamedTuple):
    """What a trace knows of where its program will run; part of the key of every cached trace.

    Attributes:
        allowed: the backends that calls without one of their own may take.
        platforms: those the program may be lowered for.
        portable: whether it must run in a process that never imported what traced it.
    """

    allowed: tuple[Backend, ...] = BACKENDS
    platforms: frozenset[str] = EVERYWHERE
    portable: bool = False


# A context of JAX: part of the key of every cache of traces, that of a nested `jax.jit` too.
_SITUATION = jax.make_user_context(default_value=Situation())


def situation() -> Situation:
    """The situation of the current trace."""
    return _SITUATION.value


def inside(where: Situation) -> contextlib.AbstractContextManager[None]:
    """Traces in here are for this situation."""
    return _SITUATION(where)


def using(backend: Backend | None) -> contextlib.AbstractContextManager[None]:
    """A context in which operations without `backend=` use it; "cpu" falls back to "xla"."""
    if backend is None:
        return contextlib.nullcontext()
    allowed = tuple(b for b in BACKENDS if b == backend or b == "xla")
    return inside(situation()._replace(allowed=allowed))


def without_kernels() -> contextlib.AbstractContextManager[None]:
    """A context without kernels: only what XLA compiles itself, native CPU loops included."""
    return inside(situation()._replace(allowed=("cpu", "xla"), portable=True))


@dataclasses.dataclass(frozen=True)
class Form:
    """One way to run a computation.

    Attributes:
        name: the method, e.g. "scatter", "delta_stepping".
        backend: "xla" runs everywhere, "cpu" where the program is lowered for a CPU, "pallas" for
            an NVIDIA GPU.
        run: `run(*operands) -> result`, traceable.
        batched: `batched(axis_size, in_batched, *operands) -> result`, every leaf with a leading
            axis: what vmap does. "map": `lax.map` over the lanes. None: JAX's own batching,
            of "cpu" "map".
    """

    name: str
    backend: Backend
    run: Callable[..., Any]
    batched: Callable[..., Any] | Literal["map"] | None = None

    def __str__(self) -> str:
        return f"{self.backend}/{self.name}"


def needed(forms: Mapping[Backend, Any], platforms: frozenset[str]) -> dict[str, Backend]:
    """Platform -> backend of the form that runs there, of those that `platforms` may meet."""
    found = {}
    for platform in sorted(platforms):
        usable = [b for b in BACKENDS if b in forms and PLATFORM_OF.get(b, platform) == platform]
        if usable:
            found[platform] = usable[0]
    return found


def choose(name: str, operands: tuple[Any, ...], *forms: Form) -> Any:
    """The result of the form that suits the platform the program is lowered for.

    Args:
        name: of the computation, for `explain`.
        operands: pytrees of arrays, for every form.
        forms: at most one for each backend; those of backends that are not allowed are left out.

    Lowering for a platform without a form raises. Differentiable where the form is and no batch
    rule is in the way: "cpu" forms are not, nor is what has `batched`.
    """
    allowed = [form for form in forms if form.backend in situation().allowed]
    with record(name, {form.backend: form for form in allowed}):
        return branch(name, {form.backend: form for form in allowed}, operands)


def for_cuda(operands: tuple[Any, ...], special: Any, usual: Any) -> Any:
    """`special(*operands)` on NVIDIA GPUs, where XLA is faster so, `usual(*operands)` elsewhere."""
    platforms = situation().platforms
    if platforms == {"cuda"}:
        return special(*operands)
    if "cuda" not in platforms:
        return usual(*operands)
    return lax.platform_dependent(*operands, cuda=special, default=usual)


def explicit_mesh(operands: Any) -> Any:
    """The mesh with explicit axes that an array among the operands lies on, or None."""
    for leaf in jax.tree.leaves(operands):
        if isinstance(leaf, jax.Array):
            mesh = getattr(jax.typeof(leaf).sharding, "mesh", None)
            if mesh is not None and not mesh.empty and AxisType.Explicit in mesh.axis_types:
                return mesh
    return None


def branch(name: str, forms: dict[Backend, Form], operands: tuple[Any, ...]) -> Any:
    """`choose` among forms that may all be taken."""
    if (mesh := explicit_mesh(operands)) is not None:
        # Where a value lies is not part of its type in here: forms make arrays of their own.
        anywhere = functools.partial(branch, name, forms)
        replicated = NamedSharding(mesh, PartitionSpec())
        run = jax.sharding.auto_axes(
            lambda *arrays: anywhere(arrays), axes=mesh.axis_names, out_sharding=replicated
        )
        return run(*operands)
    where = situation()
    places = needed(forms, where.platforms)
    runs = {}
    for backend in dict.fromkeys(places.values()):
        here = frozenset(p for p, b in places.items() if b == backend)
        runs[backend] = _run_of(name, forms[backend], where._replace(platforms=here))
    if len(runs) == 1 and len(places) == len(where.platforms):
        return next(iter(runs.values()))(*operands)
    if not runs:
        raise NotImplementedError(f"there is no form for {sorted(where.platforms)}.")
    special = {PLATFORM_OF[b]: run for b, run in runs.items() if b in PLATFORM_OF}
    default = {"default": runs["xla"]} if "xla" in runs else {}
    return lax.platform_dependent(*operands, **default, **special)


def _run_of(name: str, form: Form, where: Situation) -> Callable[..., Any]:
    """The form with its batch rule, both traced for the platforms it is taken on."""
    note = recorder_of(form)
    words = f"{name}.{form.backend}.{form.name}".replace(" ", "_")

    @contextlib.contextmanager
    def within():
        # What profiles and lowered programs show; kernels have names of their own.
        scope = jax.named_scope(words) if form.backend != "pallas" else contextlib.nullcontext()
        with inside(where), note(), scope:
            yield

    def run(*operands):
        with within():
            return form.run(*operands)

    if form.batched is None and form.backend != "cpu":
        return run

    def rule(axis_size, in_batched, *operands):
        with within():
            if callable(form.batched):
                return form.batched(axis_size, in_batched, *operands)
            return one_by_one(wrapped, axis_size, in_batched, *operands)

    wrapped = with_batch_rule(run, rule)
    return wrapped


# ---- What was chosen ----


@dataclasses.dataclass
class Choice:
    """A choice that was made while recording.

    Attributes:
        name: of the computation.
        forms: by backend; of an `Op` its implementations.
        platforms: those that it was made for.
        plan: of an `Op` its plan, else None.
        inner: backend -> the choices inside that form.
    """

    name: str
    forms: dict[Backend, Any]
    platforms: frozenset[str]
    plan: Any = None
    inner: dict[str, list[Choice]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Record:
    """The recorded choices of a trace, outermost first, and its notes.

    `level`: JAX's state where what is traced stands for an eager call; None: nowhere.
    """

    choices: list[Choice] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    level: Any = None


_RECORDING = jax.make_user_context(default_value=0)  # a number of its own: no trace is cached
_NUMBERS = itertools.count(1)
_RECORD: contextvars.ContextVar[Record | None] = contextvars.ContextVar("record", default=None)
_CHOICE: contextvars.ContextVar[Choice | None] = contextvars.ContextVar("choice", default=None)


@contextlib.contextmanager
def recording() -> Iterator[Record]:
    """A context that records all choices; no cached trace is used in it."""
    found = Record()
    token, outer = _RECORD.set(found), _CHOICE.set(None)
    try:
        with _RECORDING(next(_NUMBERS)):
            yield found
    finally:
        _CHOICE.reset(outer)
        _RECORD.reset(token)


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """A context without recording, for traces that only ask for shapes."""
    token = _RECORD.set(None)
    try:
        with _RECORDING(0):
            yield
    finally:
        _RECORD.reset(token)


def is_recording() -> bool:
    """Whether choices are recorded here."""
    return _RECORD.get() is not None


def trace_level() -> Any:
    """JAX's state here: another one inside of a nested jit or vmap."""
    return get_opaque_trace_state(convention="flax")


def explains_eager_call() -> bool:
    """Whether what is traced here is recorded for what it does outside of every trace."""
    found = _RECORD.get()
    return found is not None and found.level is not None and found.level == trace_level()


def note(text: str) -> None:
    """Adds a note to the plan of `explain`: what `prepare` would gain, a warning."""
    found = _RECORD.get()
    if found is not None and text not in found.notes:
        found.notes.append(text)


@contextlib.contextmanager
def record(name: str, forms: dict[Backend, Any], plan: Any = None) -> Iterator[None]:
    """Records a choice, if anybody records; choices traced inside are nested in it."""
    found = _RECORD.get()
    if found is None:
        yield
        return
    choice = Choice(name, forms, situation().platforms, plan)
    found.choices.append(choice)
    token = _CHOICE.set(choice)
    try:
        with _RECORDING(next(_NUMBERS)):
            yield
    finally:
        _CHOICE.reset(token)


def recorder_of(form: Form) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A context whose choices are recorded as nested in `form` of the enclosing choice."""
    choice, found = _CHOICE.get(), _RECORD.get()
    if choice is None or found is None:
        return contextlib.nullcontext

    @contextlib.contextmanager
    def within():
        inner = Record(choice.inner.setdefault(form.backend, []), found.notes)
        token, outer = _RECORD.set(inner), _CHOICE.set(None)
        try:
            with _RECORDING(next(_NUMBERS)):
                yield
        finally:
            _CHOICE.reset(outer)
            _RECORD.reset(token)

    return within
