"""The one file that names a Pallas backend: a launch of Mosaic GPU around the code of
`emitter.py`."""

import math
from typing import Any

import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.mosaic.gpu import utils as mosaic_utils
from jax.experimental.pallas import mosaic_gpu as plgpu
from jaxlib.mlir.dialects import llvm

from . import device
from .emitter import Emitter, Memory
from .values import type_of

_KINDS = {"int32": "i32", "uint32": "i32", "float32": "f32"}


def run(job, name: str, devices: int):
    """One Mosaic GPU launch of a `launch.Job`; `inout` is initialised.

    devices: how many devices run it together, a launch on each inside a `shard_map`.
    """
    kernel, inputs, outputs, inout, ctas, threads, shared_words = job
    mesh = plgpu.Mesh(
        grid=(ctas,), grid_names=("cta",), num_threads=threads // 128, thread_name="warpgroup"
    )
    arrays = [*inputs, *outputs, *inout]
    capability = device.target().capability or device.CAPABILITY

    def body(*refs):
        def scoped(shared):
            @plgpu.inline_mgpu(arg_types=(plgpu.RefType(),) * (len(refs) + 1))
            def emit(context, *memrefs):
                i32, i64 = type_of("i32"), type_of("i64")
                base = llvm.ptrtoint(i32, mosaic_utils.memref_ptr(memrefs[-1]))

                def remote(ref, number):
                    valid = context.to_remote(ref, number)
                    return llvm.ptrtoint(i64, mosaic_utils.memref_ptr(valid))

                k = Emitter(ctas, threads, (base, shared_words), devices, remote, capability)
                kernel(
                    k,
                    *(
                        Memory(
                            llvm.ptrtoint(i64, mosaic_utils.memref_ptr(m)),
                            _KINDS[jnp.dtype(a.dtype).name],
                            math.prod(a.shape),
                            "global",
                            ref=m,
                        )
                        for m, a in zip(memrefs[:-1], arrays, strict=True)
                    ),
                )

            emit(*refs, shared)

        # refs are inputs, then aliased arrays (in and out), then outputs: restore the kernel's
        # order
        n, m = len(inputs), len(inputs) + len(inout)
        refs = (*refs[:n], *refs[m:], *refs[n:m])
        pl.run_scoped(scoped, plgpu.SMEM((shared_words,), jnp.int32), collective_axes="warpgroup")

    params = plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Lane)
    written = len(outputs)
    call = pl.kernel(body, out_type=tuple(outputs), mesh=mesh, compiler_params=params, name=name)

    # `run_state` confines the mutable arrays to one pure primitive, which custom_jvp and
    # custom_vmap can hold. Outputs are overwritten whole: their initial zeros are never made.
    def launched(refs):
        outs, started = refs[:written], refs[written:]
        results: Any = call(*inputs, *started)
        for ref, value in zip(outs, results, strict=True):
            ref[...] = value

    start = [*(jnp.zeros(a.shape, a.dtype) for a in outputs), *inout]
    return tuple(pl.run_state(launched)(start))
