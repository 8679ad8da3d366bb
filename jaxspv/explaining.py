"""`explain`: what would run for a call, and why not something faster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._core.dispatch import Plan
from .algorithms.bfs.api import explain_bfs
from .algorithms.components import explain_components
from .algorithms.fixpoint.api import explain_fixpoint
from .algorithms.pagerank.api import explain_pagerank
from .algorithms.sssp.api import explain_sssp
from .algorithms.triangles import explain_triangles
from .ops.mxm.api import explain_mxm
from .ops.mxv.api import explain_mxv


def _vxm(x: Any, A: Any, *args: Any, **kwargs: Any) -> Plan:
    return explain_mxv(A, x, *args, flip=True, **kwargs)


EXPLAINERS: dict[str, Callable[..., Plan]] = {
    "mxv": explain_mxv,
    "spmv": explain_mxv,
    "spmspv": explain_mxv,
    "mxm": explain_mxm,
    "vxm": functools.partial(_vxm),
    "bfs": explain_bfs,
    "sssp": explain_sssp,
    "pagerank": explain_pagerank,
    "fixpoint": explain_fixpoint,
    "connected_components": explain_components,
    "triangle_count": explain_triangles,
}


def explain(op: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """The plan of a call: implementations in order of preference, refusals with reasons, notes.

    Args:
        op: an operation or algorithm, or its name: "mxv", "bfs", ...
        *args, **kwargs: as for the call itself.

    Returns:
        A `Plan`; `print` it. Nothing is computed.

    Raises:
        ValueError: nothing of that name can be explained.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]], format="coo")
    >>> print(explain("mxv", A, jnp.ones(2)))
    spmv: xla/segments
      not pallas/merge_path: COO does not list the entries of a row side by side
      not xla/row_bins: the rows are not arranged in bins: `prepare(A, for_=...)`
      not xla/pieces: COO does not list the entries of a row side by side
      note: `prepare(A, for_='mxv')` would arrange the rows in bins.
    """
    name = op if isinstance(op, str) else getattr(op, "__name__", repr(op))
    if name not in EXPLAINERS:
        raise ValueError(f"`op` must be one of {sorted(EXPLAINERS)}; got {name!r}.")
    return EXPLAINERS[name](*args, **kwargs)
