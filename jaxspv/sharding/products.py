"""Products whose results stay on the devices of their rows (by `ops/products/mesh.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core.operations.overload import overloadable
from ..algebra.semirings import Semiring, plus_times
from .graph import ShardedGraph

if TYPE_CHECKING:
    from jax import Array

    from .._core.platforms import Backend
    from ..shapes import Shaped


@overloadable
def row_sharded_mxm(
    G: ShardedGraph,
    X: Shaped[Array, "n k"],
    semiring: Semiring | str = plus_times,
    *,
    backend: Backend | None = None,
) -> Shaped[Array, "R C places k"]:
    """`G.deal(mxm(G, X, semiring))` without the whole product on any device. Traceable.

    Each row of the result stays on the device of its vertex. With whole rows nothing is sent.

    Args:
        G: a sharded graph.
        X: (n, k), whole on every device; or what `G.deal` gives, as for `mxm`.
        semiring: as in `mxm`.
        backend: "pallas", "xla", or None.

    Returns:
        (R, C, places, k), sharded by `G.spec`; places without a vertex hold the zero of `add`.

    Raises:
        TypeError: G is no ShardedGraph.
        ValueError: X has not n rows.

    >>> import jax, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> G = jsp.shard(jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3)), mesh)
    >>> G.gather(row_sharded_mxm(G, jax.numpy.eye(3, 2))).tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """
    raise TypeError(f"`G` must be a ShardedGraph; got {type(G).__name__}.")
