"""Components of a sharded graph in one launch on each GPU (`pallas_kernels/components/mesh.py`)."""

from __future__ import annotations

from pallas_kernels.components.mesh import components as kernel

from ...sharding.exchange import Local, on_mesh
from ...sharding.kernels import one_kernel_refused
from .api import counted
from .mesh import op


def _refuse(G) -> str | None:
    return one_kernel_refused(G)


@op.register("one_launch", backend="pallas", refuse=_refuse)
def one_launch(G, **options):
    """Forests of all devices are joined inside the kernel. options: of the kernel."""

    def body(local: Local):
        part, block = local.part, local.block
        graph = block.indptr, block.indices, local.positions
        how = {"axes": part.axes, "symmetric": G.symmetric, **options}
        return kernel(*graph, **how)

    return counted(*on_mesh(body, G))
