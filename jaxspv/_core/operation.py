"""Operations: one JAX primitive each, with forms for platforms that are chosen when lowering.

An `Operation` owns what does not depend on the platform: types of results, tangent, transpose. A
`Form` computes it: arrays in, arrays out. A call is one equation; lowering decides for its platform
which form it becomes, by types and static options. Only this file names `jax.interpreters`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, partial_eval
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from .derivatives import is_inexact, is_zero, jvp_of_perturbed, transpose_of_tangent, with_zeros
from .eager.arrays import as_array, as_operands, is_eager
from .eager.programs import PROGRAMS
from .forms import Call, Form, Plan, Table, Types, call_of, on_types, structs, types_of
from .loops import alike, one_by_one, vmapped
from .platforms import PLATFORM_OF, WORDS, Backend, inside


def typed(dtype: Any, *shape: int) -> Any:
    """A `jax.ShapeDtypeStruct`: the type of one result, for the `types` of an operation."""
    return jax.ShapeDtypeStruct(shape, dtype)


def without_dead_code(jaxpr: Any) -> Any:
    """The jaxpr without what no result needs: a lowered program has only the rest."""
    return partial_eval.dce_jaxpr(jaxpr, True)[0]


Tangent = Callable[..., Any] | Literal["definition", "linear"]
OPERATIONS: dict[Primitive, Operation] = {}  # by which `explain` finds them in a jaxpr


class Operation(Table):
    """One operation: a primitive, the table of its forms, its types and derivatives.

    Args:
        name: of the primitive, in messages and profiles.
        tangent: `tangent(primals, tangents, result, **static) -> result tangent`, built only from
            operations that transpose. Leaves of `tangents` that are `SymbolicZero` are known to be
            zero; leaves of integer results take `SymbolicZero` or float0. "definition": the tangent
            of the form in XLA. "linear": the operation itself, which is linear in its first operand
            and has derivatives by no other. None: every result is an integer or a boolean, and has
            float0.
        transpose: of an operation that is linear in some operands: `transpose(cotangent, *operands,
            **static)` gives a cotangent for each of these, None for the others. In the place of a
            linear operand it gets shapes and dtypes.
        linear: `linear(*operands, **static)`: the transpose is that of `tangent`, as solvers ask.
        types: `types(*operands, **static) -> result` of `jax.ShapeDtypeStruct`s, for operands that
            have shapes and dtypes alone. None, or a result of None: found by tracing a form.
        advice: `advice(*operands, **static) -> sentences`: what would make the call faster.
        internal: a step of other operations; `explain` lists it inside of them, or last.
    """

    def __init__(
        self,
        name: str,
        tangent: Tangent | None = None,
        *,
        transpose: Callable[..., tuple[Any, ...]] | None = None,
        linear: Callable[..., bool] | None = None,
        types: Callable[..., Any] | None = None,
        advice: Callable[..., Sequence[str]] | None = None,
        internal: bool = False,
    ):
        super().__init__(name, internal, advice)
        own = {"definition": self._tangent_of_definition, "linear": self._tangent_if_linear}
        self.tangent: Any = own[tangent] if isinstance(tangent, str) else tangent
        self.transpose: Any = transpose
        self.types = types
        if linear is not None:
            self.transpose = functools.partial(self._transpose_of_tangent, linear)
        self.primitive = primitive = Primitive(name.replace(" ", "_"))
        primitive.multiple_results = True
        primitive.def_abstract_eval(self._abstract)
        primitive.def_impl(self._eager)
        batching.primitive_batchers[primitive] = self._batch
        ad.primitive_jvps[primitive] = self._jvp
        if self.transpose is not None:
            ad.primitive_transposes[primitive] = self._transpose
        for platform in ("cpu", "cuda", None):
            rule = functools.partial(self._lower, platform or "other")
            mlir.register_lowering(primitive, rule, platform=platform, inline=False)
        OPERATIONS[primitive] = self

    def __repr__(self) -> str:
        return f"Operation({self.name!r})"

    def __call__(
        self,
        *operands: Any,
        backend: Backend | None = None,
        method: str | None = None,
        **static: Any,
    ) -> Any:
        """Binds the primitive: one equation in a trace; outside of traces it is compiled and run.

        Raises:
            ValueError: `backend` or `method` names nothing that exists.
            NotImplementedError: every form refuses; says why for each.
        """
        leaves, tree = jax.tree.flatten(operands)
        call = call_of(tree, static, backend, method)
        if not is_eager(*leaves):
            return self._bound(call, *leaves)
        return PROGRAMS.run(self.primitive.name, self._bound, call, as_operands(leaves))

    def _bound(self, call: Call, *leaves: Any) -> Any:
        if is_eager(*leaves):  # JAX runs a program again, without jit, to find what is not finite
            why = "jax_debug_nans or jax_debug_infs refuses"
            raise FloatingPointError(f"{self.name} gives a NaN or an infinity, which {why}.")
        arrays = alike([as_array(leaf) for leaf in leaves])
        structure, _ = self._results(call, types_of(arrays))
        return jax.tree.unflatten(structure, self.primitive.bind(*arrays, call=call))

    # ---- The choice ----

    def _results(self, call: Call, types: Types) -> tuple[Any, Types]:
        """The structure and the types of the results, without the axes of vmap."""
        x64 = jax.config.jax_enable_x64  # pyright: ignore[reportAttributeAccessIssue]
        return _results_of(self, call.replace(lanes=()), call.single(types), x64)

    def planned(self, call: Call, types: Types, platform: str | None = None) -> Plan:
        """The plan of a call with operands of these types."""
        return on_types(functools.partial(self.plan, call, platform), call, types)

    def traced(self, platform: str, call: Call, types: Types) -> Any:
        """The jaxpr of the form for a platform; it may hold other operations."""
        run = functools.partial(self._run, platform=platform, call=call)
        return without_dead_code(jax.make_jaxpr(run)(*structs(types)).jaxpr)

    # ---- The rules of the primitive ----

    def _abstract(self, *avals: Any, call: Call) -> list[ShapedArray]:
        _, results = self._results(call, types_of(avals))
        axes = [size for size, _ in reversed(call.lanes)]
        found = [ShapedArray((*axes, *shape), dtype) for shape, dtype in results]
        if not any(aval.manual_axis_type.varying for aval in avals):
            return found
        one = avals[0]  # all vary along the same axes, by `alike`
        return [
            v.update(
                sharding=NamedSharding(one.sharding.mesh, PartitionSpec(*[None] * v.ndim)),
                manual_axis_type=one.manual_axis_type,
            )
            for v in found
        ]

    def _eager(self, *leaves: Any, call: Call) -> list[Array]:
        """Runs an equation that a transformation (vmap, grad) has bound outside of traces."""
        name, operands = self.primitive.name, as_operands(leaves)
        return jax.tree.leaves(PROGRAMS.run(name, self._bound, call, operands))

    def _batch(self, leaves, dims, *, call: Call):
        """Binds the same primitive, one more entry in `lanes`: a form is batched when lowered."""
        each = list(zip(leaves, dims, strict=True))
        size = next(x.shape[d] for x, d in each if d is not None)
        moved = [jnp.moveaxis(x, d, 0) if d else x for x, d in each]  # None or 0: as it is
        lane = size, tuple(d is not None for d in dims)
        call = call.replace(lanes=(*call.lanes, lane))
        out = self.primitive.bind(*alike(moved), call=call)
        return out, [0] * len(out)

    def _jvp(self, primals, tangents, *, call: Call):
        results = self.primitive.bind(*primals, call=call)
        given = [None if is_zero(t) else t for t in tangents]  # an `ad.Zero` has no leaves
        found = [None] * len(results)
        if any(map(is_inexact, results)) and any(t is not None for t in given):
            found = _inlined(list(primals), given, results, rule=self._tangents, call=call)
        zeros = [ad.Zero(jax.typeof(v).to_tangent_aval()) for v in results]
        return results, [z if t is None else t for z, t in zip(zeros, found, strict=True)]

    def _tangents(self, primals, tangents, results, *, call: Call):
        """Tangents of the results; None, as for the operands, for zeros and other than floats."""
        structure, _ = self._results(call, types_of(primals))
        tangent = functools.partial(self.tangent, **dict(call.static))

        def fn(primals, tangents, results):
            trees = map(call.tree.unflatten, (primals, with_zeros(primals, tangents)))
            found = structure.flatten_up_to(tangent(*trees, structure.unflatten(results)))
            each = zip(results, found, strict=True)
            return [None if is_zero(t) or not is_inexact(v) else t for v, t in each]

        for _, flags in call.lanes:
            axes = [0 if on else None for on in flags]
            fn = jax.vmap(fn, in_axes=(axes, axes, 0))
        with inside(call.where):
            return fn(primals, tangents, results)

    def _transpose(self, cotangents, *leaves, call: Call):
        leaves = [as_array(x) if isinstance(x, bool) else x for x in leaves]  # a literal of jit's
        known = [None if ad.is_undefined_primal(x) else x for x in leaves]
        avals = [x.aval if k is None else x for x, k in zip(leaves, known, strict=True)]
        given = [ad.instantiate_zeros(c) for c in cotangents]
        return _inlined(given, known, rule=self._cotangents, call=call, types=types_of(avals))

    def _cotangents(self, cotangents, known, *, call: Call, types: Types):
        """Cotangents of the leaves in which the operation is linear, which are not known."""
        structure, _ = self._results(call, types)
        places = structs(call.single(types))
        transpose = functools.partial(self.transpose, **dict(call.static))

        def fn(cotangents, known):
            leaves = [s if x is None else x for s, x in zip(places, known, strict=True)]
            operands, found = call.tree.unflatten(leaves), []
            parts = transpose(structure.unflatten(cotangents), *operands)
            for operand, part in zip(operands, parts, strict=True):
                tree = jax.tree.structure(operand)
                found += [None] * tree.num_leaves if part is None else tree.flatten_up_to(part)
            return [c if x is None else None for c, x in zip(found, known, strict=True)]

        for _, flags in call.lanes:
            fn = functools.partial(_summed, fn, flags)
        with inside(call.where):
            return fn(cotangents, known)

    def _transpose_of_tangent(self, linear, cotangent, *operands, **static):
        if not linear(*operands, **static):
            raise NotImplementedError(f"`{self.name}` is not linear here: no transpose.")
        return transpose_of_tangent(functools.partial(self.tangent, **static), cotangent, operands)

    def _tangent_of_definition(self, primals, tangents, result, **static):
        """The tangent by JAX's differentiation of the form in XLA."""
        call = call_of(jax.tree.structure(primals), static, "xla")
        (impl,) = self.plan(call, "other", *primals, **static).chosen
        return jvp_of_perturbed(functools.partial(impl.run, **static), primals, tangents)[1]

    def _tangent_if_linear(self, primals, tangents, result, **static):
        zero = is_zero(tangents[0])
        return jnp.zeros_like(result) if zero else self(tangents[0], *primals[1:], **static)

    def _lower(self, platform: str, ctx, *args, call: Call):
        # No sharding or varying axes: forms create arrays without, and a loop carries one kind.
        bare = [ShapedArray(v.shape, v.dtype, weak_type=v.weak_type) for v in ctx.avals_in]
        if _foreign_calls_refused(ctx.module_context):
            call = call.replace(where=call.where._replace(portable=True))
        rule = mlir.lower_fun(_inlined, multiple_results=True)
        ctx = ctx.replace(avals_in=bare)
        try:
            return rule(ctx, *args, rule=self._run, platform=platform, call=call)
        except KeyError as error:  # the token of an effect that the primitive does not have
            if "Effect" not in str(error):
                raise
            raise NotImplementedError(
                f"{self.name} takes no callbacks with `ordered=True` in functions of yours: its "
                "forms run them in orders of their own. Leave `ordered` out."
            ) from error

    def _run(self, *leaves: Any, platform: str, call: Call) -> list[Array]:
        """The results of the form for a platform; traced while lowering."""
        (impl,) = self.planned(call, types_of(leaves), platform).chosen
        if (only := PLATFORM_OF.get(impl.backend, platform)) != platform:
            raise NotImplementedError(
                f"`{self.name}` was asked for with backend={impl.backend!r}, which runs on "
                f"{WORDS[only]} only; the operands are on {platform}."
            )
        scope = f"{self.name}.{impl.backend}.{impl.name}".replace(" ", "_")
        # kernels have names of their own
        named = contextlib.nullcontext() if impl.backend == "pallas" else jax.named_scope(scope)
        with inside(call.where.on(platform)), self._on_no_mesh(), named:
            found = _over_lanes(impl, call, leaves)
        want = self._abstract(*map(jax.typeof, leaves), call=call)
        found = [
            x if getattr(x, "dtype", None) == v.dtype else jnp.asarray(x, v.dtype)
            for x, v in zip(found, want, strict=True)
        ]
        if [v.shape for v in want] != [v.shape for v in found]:
            raise TypeError(f"{self.name}: {impl} gives {types_of(found)}, not {want}.")
        return found

    def _on_no_mesh(self) -> contextlib.AbstractContextManager[Any]:
        """A context in which a form creates arrays like those it gets: on no mesh that was set."""
        mesh = jax.sharding.get_abstract_mesh()
        if mesh.empty or mesh.manual_axes:
            return contextlib.nullcontext()
        none = AbstractMesh((), (), abstract_device=mesh.abstract_device)  # kernels are made for it
        return jax.sharding.use_abstract_mesh(none)


@functools.lru_cache(maxsize=4096)
def _results_of(op: Operation, call: Call, types: Types, x64: bool) -> tuple[Any, Types]:
    """The structure and the types of the results of an operation."""
    del x64  # part of the key
    (impl,) = op.planned(call, types, "other").chosen
    result = None if op.types is None else on_types(op.types, call, types)
    if result is None:
        run = functools.partial(impl.run, **dict(call.static))
        with inside(call.where.on(PLATFORM_OF.get(impl.backend, "other"))), op._on_no_mesh():
            result = jax.eval_shape(run, *call.tree.unflatten(structs(types)))
    leaves, structure = jax.tree.flatten(result)
    return structure, types_of(leaves)


@functools.partial(jax.jit, static_argnames=("rule", "call", "types", "platform"), inline=True)
def _inlined(*arrays: Any, rule: Callable[..., Any], **static: Any) -> Any:
    """A rule of an operation, traced once for equal static arguments and types of arrays."""
    return rule(*arrays, **static)


def _over_lanes(impl: Form, call: Call, leaves: Sequence[Any]) -> list[Any]:
    """The leaves of a form's result under the vmaps of `call.lanes`: the innermost by its rule. The
    others are JAX's own batching of that rule, or a map where it calls a kernel or a loop."""
    rule, run, lanes = impl.batched, impl.run, [*call.lanes]
    mapped = rule == "map" or (callable(rule) and impl.backend != "xla")
    if lanes and callable(rule):
        size, flags = lanes.pop(0)
        run = functools.partial(rule, size, call.tree.unflatten(flags))

    def fn(*leaves):
        return jax.tree.leaves(run(*call.tree.unflatten(leaves), **dict(call.static)))

    for size, flags in lanes:
        fn = functools.partial(one_by_one if mapped else vmapped, fn, size, flags)
    return fn(*leaves)


def _summed(fn: Callable[..., Any], flags: tuple[bool, ...], cotangents: Any, known: Any) -> Any:
    """Cotangents; summed over the axis of a vmap for operands that do not have that axis."""
    axes = [0 if on else None for on in flags]
    found = jax.vmap(fn, in_axes=(0, axes))(cotangents, known)
    return [c if on or c is None else c.sum(0) for c, on in zip(found, flags, strict=True)]


def _foreign_calls_refused(module: Any) -> bool:
    """Whether a module must hold no calls of handlers that this process registered. An export runs
    in other processes. XLA cannot divide such a call among devices: it would gather whole operands
    on each. Inside of a `shard_map` over all axes every device has its own call."""
    axes = module.axis_context
    spread = getattr(axes, "num_devices", 1) > 1
    if (mesh := getattr(axes, "mesh", None)) is not None:
        automatic = set(mesh.axis_names) - set(axes.manual_axes)
        spread = any(mesh.shape[name] > 1 for name in automatic)
    return module.lowering_parameters.for_export or spread
