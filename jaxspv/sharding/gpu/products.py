"""Products of a sharded graph by the kernels of one GPU, on each its own rows."""

from __future__ import annotations

import functools

from jax.sharding import Mesh

from ..._core.compat import kernels_refused
from ..products import op, product
from .frame import unasked


def _refuse(G, x, semiring, *, flip) -> str | None:
    del x, semiring
    mesh = G.part.mesh
    if (reason := kernels_refused()) is not None:
        return reason
    if flip:
        return "kernels of one GPU gather along rows: `mxv`, and `mxm` with the array on the right"
    if not isinstance(mesh, Mesh) or any(
        d.platform not in ("gpu", "cuda") for d in mesh.devices.flat
    ):
        return "its devices are no NVIDIA GPUs"
    return unasked(mesh)


op.register("kernels", backend="pallas", refuse=_refuse)(functools.partial(product, kernels=True))
