"""Launches of kernels written in SIMT form, and the primitives they are written with.

A kernel is a Python function `kernel(k, memory)` written once, for ONE CUDA thread. `k` offers the
primitives below, `memory` holds the arrays by name. `launch` turns every call on `k` into GPU code
(`mosaic.py`); interpreted it runs the same function in lock step over NumPy arrays
(`interpret.py`).

    k.thread, k.lane, k.warp, k.cta     int32 values; k.threads, k.ctas are Python ints
    values    + - * // % & | ^ ~ << >> (arithmetic) == != < <= > >= on int32, float32 and bool
              values and Python numbers; // and % of int32 are unsigned, float division and
              k.sqrt are correctly rounded, k.exp2 and k.log2 right to 2^-22;
              k.where, k.minimum, k.maximum, k.union(several), k.shr (logical),
              k.below(v, n): 0 <= v < n, k.popc, k.ctz (of a non-zero word), k.const(x, kind),
              k.cast(x, kind), k.bits(x, kind); kinds are "i32", "f32", "i1";
              k.unpack(word, narrow) -> two f32, k.pack(low, high, narrow) -> word, to nearest
              even: two floats of 16 bits, narrow: "bf16" or "f16"
    control   k.while_(cond, body, *carry) -> carry;  cond(*carry) -> bool, body(*carry) -> tuple
              k.if_(cond, then, *default) -> then() where cond, else default
              k.for_(start, stop, step, body, *carry), k.spread(size, f, *carry): over the grid
              k.each_bit(word, body, *carry): over the numbers of its set bits
    several   k.several(many, f) -> f(0), f(1), ... side by side, in flight together: operators
              and primitives then act on each of them, and loops carry them (`typed.py`);
              k.total(several, *start), one_by_one(*several): in their order
    memory    k.load(a, i, mask=None, other=0, cache=None | "nc" | "stream" | "fresh"),
              k.prefetch(a, i, mask), k.search(a, low, high, word): by bisection
              k.load_vec(a, i, width, ...) -> width values, k.store(a, i, v, mask), k.store_vec,
              k.load_half(a, i) -> the low 16 bits, k.store_half(a, i, v, mask): i counts halves of
              the words of global memory
              k.either(c, a, b): for loads, the array of global memory a where c, else b
              k.store_pair(a, i, x, y, mask), k.load_pair(a, i, mask, acquire): two words of global
              memory by one access; the load acquires what came before the store
              k.atomic(op, a, i, v, mask, order="relaxed" | "acq_rel") -> old value; op: add or and
              xor min max exch
              k.reduce(op, ...): the same without the old value
              k.reduce_vec(a, i, values, mask): adds float32 to 1, 2 or 4 words of global memory
              k.atomic_cas(a, i, compare, v, mask) -> old value
              k.shared(words, kind): memory of the CTA, allocated outside of any control flow
              k.least_pair(a, i, x, y, mask): an atomic minimum on a pair of global memory, which
              becomes (x, y) if that is less, compared by y, then by x as unsigned
    warp      k.ballot(b) -> 32-bit word, k.any, k.all, k.shfl(v, lane), k.shfl_up(v, d),
              k.shfl_xor(v, d), k.lanes_below(word), k.warp_scan(x), k.warp_sum(x), k.sync_warp()
    CTA   k.sync(), k.sync_count(b) -> number of threads with b
    grid      k.grid_barrier(control, reads, adds) -> (ok, *words),
              k.sums_of_ctas(control, at, amount, shared) -> (ok, before, total),
              k.results(memory, **words): stores numbers that a kernel returns
    mesh      k.device, k.devices: number of this device, of devices; k.on(a, device): the array a
              on that device; `mesh.py` has the barrier over all devices

`a` is an array (operand, output, control or shared); `i` counts elements. A masked-off load gives
`other`, a masked-off atomic 0.
Memory: plain loads may hit an L1 line that another CTA has since written; "nc" promises that
no thread writes the array in this launch, "stream" also that it is not read again soon; "fresh"
reads from L2 and sees what other CTAs have written; "acquire" also orders what follows after it,
as barriers do. Atomics are relaxed, at GPU scope (at
CTA scope on shared memory). A grid barrier orders everything before it with everything after
it.
Rules: `ballot`, `any`, `all`, `shfl*`, `sync_warp` and what is built on them are called by all 32
lanes of the warp together; `sync`, `sync_count` and `grid_barrier` by all threads of the CTA;
vector accesses are aligned to their width.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from . import device
from . import interpret as interpreted
from .device import extent
from .primitives import CONTROL_WORDS
from .typed import Arrays


class Form(TypedDict, total=False):
    """How a kernel is launched; `launch` describes the fields."""

    ctas: int
    threads: int
    interpret: bool
    shared_words: int
    more_control: int | None
    axes: tuple[str, ...]


class Job(NamedTuple):
    """A launch with its sizes: what `mosaic.run` and `interpret.run` do."""

    kernel: Callable[..., None]  # (k, *inputs, *outputs, *inout, control)
    inputs: tuple[jax.Array, ...]
    outputs: tuple[jax.ShapeDtypeStruct, ...]
    inout: tuple[jax.Array, ...]
    ctas: int
    threads: int
    shared_words: int


def launch(
    kernel: Callable[..., Any],
    operands: Mapping[str, Any],
    outputs: Mapping[str, Any],
    *,
    name: str,
    inout: dict[str, jax.Array] | None = None,
    **form: Unpack[Form],
) -> dict[str, jax.Array]:
    """Launches `kernel(k, memory)` with `ctas` x `threads` threads, where none are given with those
    of `device.extent`; returns the results by name.

    operands: name -> array; an empty one becomes a single 0. outputs: name -> size of an int32
    array, or (size, dtype), at least one element, uninitialised; or (): an int32 that comes back as
    a scalar, without the copy that a word of an array takes. inout: name -> array that the
    kernel may read and write and whose last state is a result. All are int32, uint32 or float32.
    memory has each of them, flat, under its name, and None under other names; `control` is
    CONTROL_WORDS + more_control int32, zero at the start, the first CONTROL_WORDS those of
    grid_barrier; with None for more_control there is none. If the kernel has a grid barrier, all
    CTAs must be resident together (`device.resident_ctas`). shared_words: the most that k.shared
    may allocate. Where `status` is an output and the kernel returns whether no barrier expired, its
    word becomes 0 if so, else 1. Refuses vmap.

    axes: inside of a `shard_map`, all axes of its mesh in their order: one launch on each device,
    which may write the arrays of the others. The kernels of all devices must run at the same
    time, otherwise their barriers expire.
    """
    usual = extent()
    ctas, threads = form.get("ctas", usual["ctas"]), form.get("threads", usual["threads"])
    interpret = form.get("interpret", usual["interpret"])
    shared_words, axes = form.get("shared_words", 0), form.get("axes", ())
    step = 32 if interpret else 128
    if threads % step or not 0 < threads <= 1024:
        raise ValueError(f"threads is {threads}: it must be a multiple of {step}, at most 1024")
    most = device.target().shared_bytes // 4 - 8
    if shared_words > most and not interpret:
        raise ValueError(f"shared_words is {shared_words}: a CTA has at most {most}")
    inout, more_control = dict(inout or {}), form.get("more_control", 0)
    if axes:
        operands = {**operands, "device": lax.axis_index(axes).astype(jnp.int32).reshape(1)}
    given = [x if x.size else jnp.zeros(1, x.dtype) for x in operands.values()]
    given = _refusing_vmap(name)(*given, *inout.values())
    if more_control is not None:
        inout["control"] = jnp.zeros(CONTROL_WORDS + more_control, jnp.int32)
        given = *given, inout["control"]
    names = *operands, *outputs, *inout
    sizes = [1 if x == () else x for x in outputs.values()]
    sizes = [x if isinstance(x, tuple) else (x, jnp.int32) for x in sizes]
    made = (jax.ShapeDtypeStruct((size,), dtype) for size, dtype in sizes)

    def body(k, *references):
        by_name = dict(zip(names, references, strict=True))
        number = by_name.pop("device") if axes else None
        k.device = k.const(0) if number is None else k.load(number, 0, cache="nc")
        memory = Arrays(**by_name)
        ok = kernel(k, memory)
        if "status" in outputs and ok is not None:
            k.results(memory, status=1 - ok)

    shared = -(-shared_words // 4) * 4 + 8
    inputs, started = given[: len(operands)], given[len(operands) :]
    job = Job(body, inputs, tuple(made), started, ctas, threads, shared)
    if interpret:
        results = _interpret(job, axes)
    else:
        from . import mosaic  # Pallas takes long to import, and only a launch needs it

        results = mosaic.run(job, name, lax.axis_size(axes) if axes else 1)
    out = dict(zip(names[len(inputs) :], results, strict=True))
    return out | {name: out[name].reshape(()) for name, size in outputs.items() if size == ()}


def _interpret(job: Job, axes: tuple[str, ...]):
    """`mosaic.run` by the interpreter, which is called back on the host.

    On a mesh, each device interprets the kernels of all devices and takes its own results.
    """
    made = *job.outputs, *(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in job.inout)
    given = *job.inputs, *job.inout
    devices, many = lax.axis_size(axes) if axes else 1, len(job.inputs)

    def host(me, *arrays):
        arrays = tuple(np.asarray(x) for x in arrays)
        host_job = job._replace(inputs=arrays[:many], outputs=made, inout=arrays[many:])
        return tuple(x[int(me)] for x in interpreted.run(host_job, devices))

    if not any(isinstance(x, Tracer) for x in given):
        return tuple(jax.device_put(x) for x in host(0, *(np.asarray(x)[None] for x in given)))
    gathered = [lax.all_gather(x, axes) if axes else x[None] for x in given]
    me = lax.axis_index(axes) if axes else jnp.int32(0)
    return jax.pure_callback(host, made, me, *gathered)


def _refusing_vmap(name):
    """The identity on a kernel's operands, with a batching rule that says why there is none."""

    @jax.custom_batching.custom_vmap
    def operands(*inputs):
        return inputs

    @operands.def_vmap
    def refuse(axis_size, in_batched, *inputs):
        raise NotImplementedError(
            f"vmap of the kernel {name}: its CTAs wait for each other in a grid barrier, so a "
            "batch of them cannot run as one grid; use the batched algorithm or lax.map"
        )

    return operands
