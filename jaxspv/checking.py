"""`check`: results that carry a failure as data become errors."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ._core.pytree import is_concrete
from .algorithms.common.status import seen
from .formats.csr import ROUNDED, known_symmetric
from .formats.stored import Stored
from .formats.tiled.vector import BitVector, TiledVector
from .graph import Graph

_R = TypeVar("_R")

FAILURES = {
    "overflow": "a result did not fit its capacity or its dtype (give a larger `nse` or dtype)",
    "status": "a kernel gave up waiting for its thread blocks (the GPU was busy or lost)",
    "converged": "the iteration did not converge (too few steps, or it never would)",
}
NOT_CONVERGED = {  # by the class of the result
    "AllPairs": "a negative cycle is in the graph",
    "SSSP": "a negative cycle is reachable, or `max_steps` were too few",
    "SoftSSSP": "the sum over walks diverges, or `max_iterations` were too few",
    "PageRank": "`max_iterations` were too few for `tol`",
    "Fixpoint": "only a bound on the iterations stopped it, or a sum of integers did not fit",
    "Closure": "only a bound on the iterations stopped it, or a sum of integers did not fit",
}


def check(result: _R) -> _R:
    """Returns `result`, or raises where it carries a failure: overflow, status, no convergence.

    With traced values the check is `jax.experimental.checkify.check`: transform the jitted function
    with `checkify.checkify(f)` to get the error out.

    Args:
        result: anything; sparse matrices and vectors are looked into, and named tuples with a
            field `overflow` (bool), `status` (0 is good) or `converged` (bool).

    Raises:
        ValueError: something failed; says what. Or a concrete matrix or vector breaks the
            invariants of its format (`check_invariants`), or a concrete Graph that counts as
            symmetric differs from its transpose by more than rounding.

    >>> import jaxspv as jsp
    >>> check(jsp.vector_from_entries([1], [2.0], 3)).nse
    1
    """
    for x in filter(_is_sparse, jax.tree.leaves(result, is_leaf=_is_sparse)):
        if getattr(x, "overflow", False) is not None and is_concrete(x):
            x.check_invariants()
    for G in jax.tree.leaves(result, is_leaf=_is_graph):
        if _is_graph(G) and G.symmetric and is_concrete(G.out):
            if known_symmetric(G.out, ROUNDED) is False:
                raise ValueError(
                    "a Graph that counts as symmetric holds values that differ from those of its "
                    "transpose (`with_data`?): prepare the matrix again."
                )
    for name, failed, why in _failures(result):
        bad = failed.any()
        if not is_concrete(bad):
            from jax.experimental import checkify  # of traced values alone

            checkify.check(~bad, f"{name}: {why}.")
        elif bool(bad):
            raise ValueError(f"{name}: {why}.")
    return result


def _array(x: Any) -> Any:
    """Of NumPy where there is a value: nothing to compile."""
    here = is_concrete(x) and getattr(x, "is_fully_addressable", True)
    return np.asarray(x) if here else jnp.asarray(x)


def _is_graph(node: Any) -> bool:
    return isinstance(node, Graph)


def _is_sparse(node: Any) -> bool:
    return isinstance(node, (Stored, TiledVector, BitVector))


def _is_result(node: Any) -> bool:
    return _is_sparse(node) or hasattr(node, "_fields")


def _failures(tree: Any):
    for node in jax.tree.leaves(tree, is_leaf=_is_result):
        if _is_sparse(node) and hasattr(node, "overflow"):
            yield "overflow", _array(node.overflow), FAILURES["overflow"]
        for name in getattr(node, "_fields", ()):
            value = getattr(node, name)
            if name in FAILURES:
                seen(value)
                why = NOT_CONVERGED.get(type(node).__name__) if name == "converged" else None
                yield name, (_array(value) != 0) ^ (name == "converged"), why or FAILURES[name]
            elif _is_result(value):
                yield from _failures(value)
