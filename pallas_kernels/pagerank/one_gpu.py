"""PageRank by power iteration, all iterations in one launch: pull, one grid barrier an iteration.

    x <- d (x D^-1 A + dangling(x) p) + (1 - d) p

Every row of A transposed gathers z = x / out-strength from one array of n words; its thread then
writes the new x and z and adds to two sums, the L1 change and the mass on vertices without
out-edges. The loop over rows is that of `rows/sliced.py`.

Cost of an iteration: a gather and 4 bytes an entry (8 with weights), 28 bytes a row, one grid
barrier and two reductions over a CTA (2.5 us together). No atomics but those that order the
segments of split rows.

Measured (H200): rmat18 90 us an iteration, 210 to 240 G gathers/s, above the 150 of a permuted
graph from L2: with vertices by falling degree 68% of them hit in the L1 cache (2.7 TB/s from L2,
0.8 from memory). rmat21 690 us: 240 G/s. delaunay 2^21 55 us: 110 MB at 2 TB/s of the 4.3 of a
copy. luxembourg_osm 4.6 us: barrier, reductions and one chain of accesses.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..fixpoint.increments import Increments
from ..fixpoint.steps import Iteration
from ..rows.sliced import operands_of, shared_words, sizes, workspace
from ..simt.device import DEFAULT_GRID, Grid
from ..simt.launch import launch
from ..tuning import constants

LEAST = 48  # mean entries from which `Increments` may be faster, see `Constants.increments_from`


class Limits(NamedTuple):
    """damping: d. Iterates while the L1 change of the last step is above tol or fewer than
    min_iterations were made, at most max_iterations times."""

    damping: ArrayLike
    tol: ArrayLike
    max_iterations: ArrayLike
    min_iterations: ArrayLike

    def operands(self) -> dict[str, jax.Array]:
        """As operands of a launch: knobs float32[2], limits int32[2]."""
        knobs = [jnp.asarray(x, jnp.float32) for x in self[:2]]
        limits = [jnp.asarray(x, jnp.int32) for x in self[2:]]
        return {"knobs": jnp.stack(knobs), "limits": jnp.stack(limits)}


def pagerank(
    strength: jax.Array,
    personalization: jax.Array,
    limits: Limits,
    *,
    prepared: dict[str, jax.Array],
    increments: bool | None = None,
    grid: Grid = DEFAULT_GRID,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(scores float32[n], iterations int32, change float32, status int32).

    strength float32[n]: row sums of A; personalization float32[n]: p, of sum 1, also the start.
    prepared: the in-edges by `prepare_pagerank`. change is that of the last step (inf before the
    first). increments: whether changes in 16 bits are gathered (`fixpoint/increments.py`); None:
    where gathers of many vertices take most of the time.
    """
    n = strength.shape[0]
    if increments is None:
        many = n >= constants().increments_from
        increments = many and prepared["entries"].shape[0] >= LEAST * n
    kind = Increments if increments else Iteration
    c = sizes(prepared, n)
    f32 = jnp.float32
    operands = operands_of(prepared, *(["values"] if "values" in prepared else []))
    operands |= {
        "strength": strength.astype(f32),
        "personalization": personalization.astype(f32),
        **limits.operands(),
    }
    form = grid.form()
    outputs = {
        "scores": (n, f32),
        "summary": 2,
        "change": (1, f32),
        "share": (2 * (n + 1), f32),
        **dict.fromkeys(("rank", "inverse", "teleport"), (c.positions, f32)),
        **workspace(c, len(kind.KINDS), form["ctas"], f32),
        **kind.more(c),
    }
    out = launch(
        lambda k, m: kind(k, c, m, kind.KINDS).run(),
        operands,
        outputs,
        **form,
        shared_words=shared_words(len(kind.KINDS)),
        name="pagerank",
    )
    return out["scores"], out["summary"][0], out["change"][0], out["summary"][1]
