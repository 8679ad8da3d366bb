"""Connected components of a sharded graph: rounds on each device, then a minimum over devices."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from pallas_kernels.components.mesh import components as kernel

from ..._core.loops import while_going
from ..._core.platforms import using
from ...sharding.exchange import Local, on_mesh
from ...sharding.operation import mesh_op, one_kernel_refused
from ..common.status import finished
from .api import counted, hooked


def _labels(local: Local) -> Array:
    """(n,) labels, replicated: each device hooks along its entries until nothing changes, then the
    minimum over the devices is taken, until that changes nothing either.

    Labels only fall, and the label of v is a vertex of its component. At the end the two endpoints
    of every entry have one label, hence that of the smallest vertex.
    """
    n = local.part.n
    tail, head = local.endpoints()

    def own_round(state):
        return hooked(state[0], tail, head)

    def common_round(state):
        before, _ = state
        own, _ = while_going(own_round, (before, jnp.asarray(True)))
        new = lax.pmin(own, local.part.axes)
        return new, jnp.any(new != before)

    start = (jnp.arange(n, dtype=jnp.int32), jnp.asarray(n > 0))
    return while_going(common_round, start)[0]


op = mesh_op("connected_components")


@op.register("collectives")
def _rounds(G):
    """A round is a minimum of n labels over devices; few rounds, as each is locally complete."""
    return counted(on_mesh(_labels, G), jnp.int32(0))


def sharded_connected_components(G, *, backend=None, method=None):
    with using(backend):
        return finished(op(G, backend=backend, method=method), "connected_components")


@op.register("one_launch", backend="pallas", refuse=one_kernel_refused)
def one_launch(G, **options):
    """Forests of all devices are joined inside the kernel. options: of the kernel."""

    def body(local: Local):
        part, block = local.part, local.block
        graph = block.indptr, block.indices, local.positions
        how = {"axes": part.axes, "symmetric": G.symmetric, **options}
        return kernel(*graph, **how)

    return counted(*on_mesh(body, G))
