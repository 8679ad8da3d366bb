"""Graph programs written eagerly with jaxspv's operations, as one writes them in a notebook."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxspv as jsp
from jaxspv.algebra import semirings
from jaxspv.algebra.operators import second, times, tril, truediv, valuege


def matrix(A: Any) -> Any:
    """A SciPy array with float32 values."""
    return jsp.from_scipy(A.astype(np.float32))


def betweenness(A: Any, sources: Any) -> np.ndarray:
    """Unnormalised betweenness from some sources: Brandes, "A faster algorithm", 2001."""
    total = np.zeros(A.shape[0], np.float32)
    for source in sources:
        front = jsp.vector_from_entries([source], [1.0], A.shape[0])
        paths, waves = front, []
        while int(front.nnz):
            waves.append(front)
            front = jsp.vxm(front, A, semirings.plus_first, mask=~jsp.structure(paths))
            paths = jsp.ewise_add(paths, front)
        after = None
        for here, before in zip(waves[:0:-1], waves[-2::-1], strict=True):
            share = jsp.apply(jsp.ewise_mult(here, paths, second), truediv, left=1)
            if after is not None:
                share = jsp.ewise_add(share, jsp.ewise_mult(after, paths, truediv))
            back = jsp.mxv(A, share, semirings.plus_second, mask=jsp.structure(before))
            after = jsp.ewise_mult(back, paths, times)
            if before is not waves[0]:
                total += np.asarray(after.todense())
    return total


def bfs(A: Any, source: int) -> np.ndarray:
    """Levels, -1 where unreached."""
    front = jsp.vector_from_entries([source], [True], A.shape[0])
    levels = jsp.vector_from_entries([source], [0], A.shape[0])
    level = 0
    while int(front.nnz):
        front = jsp.vxm(front, A, semirings.any_pair, mask=~jsp.structure(levels))
        level += 1
        levels = jsp.assign(levels, level, mask=jsp.structure(front))
    return np.asarray(levels.todense(-1))


def triangles(A: Any) -> int:
    """Triangles of a symmetric pattern without self loops."""
    L = jsp.select(A, tril, -1)
    C = jsp.mxm(L, L.T, semirings.plus_pair, mask=jsp.structure(L))
    return int(jsp.reduce(C))


def truss(A: Any, k: int) -> tuple[int, int]:
    """Edges of the k-truss of a symmetric pattern without self loops, and rounds."""
    C, rounds = A, 0
    while True:
        before, rounds = int(C.nnz), rounds + 1
        C = jsp.mxm(C, C, semirings.plus_pair, mask=jsp.structure(C))
        C = jsp.select(C, valuege, k - 2)
        if int(C.nnz) == before:
            return before // 2, rounds


def labels(A: Any) -> np.ndarray:
    """The smallest number in each vertex' component, by handing labels to neighbours."""
    own = jnp.arange(A.shape[0], dtype=jnp.int32)
    while True:
        new = jsp.mxv(A, own, semirings.min_second, accum=jnp.minimum, out=own)
        if bool((new == own).all()):
            return np.asarray(new)
        own = new
