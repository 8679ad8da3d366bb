"""`export`: a traced function as bytes that another process or machine can load and call."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import export as jax_export

from ._core.platforms import Backend, using

KERNEL_CALLS = ("mosaic_gpu_v2", "mosaic_gpu")  # what a Pallas kernel is in an exported program


def export(
    fn: Callable[..., Any], *, backend: Backend = "xla", platforms: Sequence[str] | None = None
) -> Callable[..., jax_export.Exported]:
    """`jax.export.export` of a function that takes or returns sparse objects, graphs, results.

    Formats, vectors, graphs and the results of algorithms register their serialisation with
    `jax.export`, so that `jax.export.export(jax.jit(fn))` and `deserialize` work on them too; this
    function adds the choice of the backend. A program of the "xla" backend runs on every platform
    it was exported for. One of "pallas" holds GPU kernels of a single platform and device kind:
    JAX gives no promise that they load in another version, and that safety check is switched off.

    Args:
        fn: traceable; of a `jax.jit` the function inside is traced anew.
        backend: "xla", or "pallas" for the kernels of an NVIDIA GPU.
        platforms: as in `jax.export.export`; None: that of the default device, or ("cuda",).

    Returns:
        A function of example arguments (or `jax.ShapeDtypeStruct`s in their place) that gives a
        `jax.export.Exported`: `.serialize()`, `.call(*args)`, `.mlir_module()`.

    Raises:
        ValueError: `backend` is unknown, or "pallas" is asked for with other platforms.
        TypeError: (when serialised) an argument holds a function (a semiring, an operator) or a
            mesh (a sharded graph: pass its arrays, and rebuild it inside).

    `serialize` and `deserialize` need the package flatbuffers (extra `export`).

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    >>> program = export(lambda A, s: jsp.bfs(A, s))(A, 0)  # program.serialize(): its bytes
    >>> program.call(A, 0).levels.tolist()
    [0, 1, 2]
    """
    if backend not in ("xla", "pallas"):
        raise ValueError(f"`backend` must be 'xla' or 'pallas'; got {backend!r}.")
    if backend == "pallas":
        if platforms is not None and tuple(platforms) != ("cuda",):
            raise ValueError(f"backend='pallas' is for ('cuda',) alone; got {platforms!r}.")
        platforms = ("cuda",)
    inner = getattr(fn, "__wrapped__", fn)  # a jit may hold a trace for another backend
    checks = [jax_export.DisabledSafetyCheck.custom_call(name) for name in KERNEL_CALLS]
    exported = jax_export.export(
        jax.jit(lambda *args, **kwargs: inner(*args, **kwargs)),
        platforms=platforms,
        disabled_checks=checks if backend == "pallas" else (),
    )

    def trace(*args, **kwargs):
        with using("cpu") if backend == "xla" else contextlib.nullcontext():  # no kernels
            return exported(*args, **kwargs)

    return trace
