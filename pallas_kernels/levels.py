"""Sums over the paths of an acyclic graph in one launch, a barrier a piece of its edges.

    x[v] <- combine(x[v], the terms mul(x[u], a) of the edges u -> v of a piece), piece by piece

A piece has places for the edges to at most `width` vertices that are held side by side, in groups
of rows: row r has a place for edge number r of each vertex, and rows of later groups are shorter.
Some lanes of a warp have one vertex of one batch, whose values lie side by side.

Cost of an edge: 4 bytes of its slot, 4 of where its source is held, 4 of its value and a gather a
batch, all from the L2 cache if the graph fits. A piece waits for two dependent accesses (slot and
value, source and x), and for a barrier: of one CTA if its vertices fit into one, else of the grid.

Measured (H200, a call from Python, log_plus; in parentheses a dense scan in JAX): 100 levels of 500
vertices and 1,000 edges 0.39 to 0.6 ms (1.3), 64 batches 0.59 to 0.79 (7.5). A level takes 3 us;
its accesses and a barrier alone would be 1.5.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .rows.folds import Fold, LogSum
from .simt.device import extent, most_ctas
from .simt.launch import launch
from .simt.scalar_jaxpr import ScalarSemiring, evaluate

IN_FLIGHT = 8  # edges of a lane that are in flight together
MOST_TURNS = 2  # times as many edges a lane, if one CTA then has all vertices of a piece
SHARED_BY = 8  # lanes that share a vertex of several batches, whose values are read side by side
LIMIT = 1 << 30


class Plan(NamedTuple):
    """The pieces of a graph.

    Attributes:
        slot: int32 (pieces, places), the value of each place, -1 for none; or the slot of the
            first place, if those of all places follow one another.
        source: int32 (pieces, places), where the source of each place is held; or (pieces, rows),
            that of all places of a row from where the sources of a piece begin; None: the row.
        first: int32 (pieces,), where the vertices of a piece are held.
        before: int32 (pieces,), where the sources of a piece begin, if it has them by row.
        rows: groups of (rows, places of each).
    """

    slot: Any
    source: jax.Array | None
    first: jax.Array
    before: jax.Array | None
    rows: tuple[tuple[int, int], ...]

    @property
    def places(self) -> int:
        """Of a piece."""
        return sum(count * width for count, width in self.rows)


def sums_by_levels(
    x: jax.Array, values: jax.Array, plan: Plan, *, semiring: ScalarSemiring, log_sum: bool = False
) -> tuple[jax.Array, jax.Array]:
    """(x[held, batches], status int32): x in the end, from the values before the first piece.

    x float32[held, batches], values float32[slots, batches], both of less than LIMIT elements, as
    the places of all pieces. mul(x, a) -> term. log_sum: terms are combined as logarithms of sums
    of exponentials, not by `semiring.combine`. Vertices without a first edge stay as they are.
    """
    (_, batches), width = x.shape, plan.rows[0][1]
    shared, threads = _shape(width * batches, -(-plan.places // width), batches)
    ctas = most_ctas(-(-width * batches * shared // threads), 1024, 1)
    widths = np.repeat(*np.array(plan.rows, np.int32).T[::-1])
    starts = np.cumsum(widths, dtype=np.int32) - widths
    run = plan.slot if isinstance(plan.slot, int) else None
    operands = {"values": values, "first": plan.first}
    operands |= {"widths": jnp.asarray(widths), "starts": jnp.asarray(starts)}
    operands |= {} if run is not None else {"slot": plan.slot}
    operands |= {} if plan.source is None else {"source": plan.source}
    operands |= {} if plan.before is None else {"before": plan.before}
    out = launch(
        lambda k, m: _Levels(k, m, plan, (batches, shared, run), semiring, log_sum).run(),
        operands,
        {"status": 1},
        inout={"x": x.reshape(-1)},
        **extent(ctas, threads),
        name="sums_by_levels",
    )
    return out["x"].reshape(x.shape), out["status"][0]


def _shape(items: int, rows: int, batches: int) -> tuple[int, int]:
    """Lanes that share a vertex of a batch, and threads of a CTA; rows: places of a vertex."""
    most = min(_power(rows), 32 if batches < SHARED_BY else SHARED_BY)
    alone = min(most, _power(max(1024 // items, 1)))
    if items <= 1024 and rows <= MOST_TURNS * alone * IN_FLIGHT:
        return alone, -(-items * alone // 128) * 128
    return most, 512


def _power(number: int) -> int:
    """The largest power of two up to a number."""
    return 1 << (number.bit_length() - 1)


class _Levels:
    """One launch."""

    def __init__(self, k: Any, m: Any, plan: Plan, sizes: Any, semiring: Any, log_sum: bool):
        self.k, self.m, self.plan, self.mul = k, m, plan, semiring.mul
        self.batches, self.shared, self.run_from = sizes
        self.rows = sum(count for count, _ in plan.rows)
        self.fold = LogSum(k, 1) if log_sum else Fold(k, semiring, 1)
        self.identity = semiring.neutral(k)

    def run(self) -> Any:
        """Whether no barrier expired."""
        k, m = self.k, self.m

        def piece(p, ok):
            self._piece(p)
            if k.ctas > 1:
                (ok,) = k.grid_barrier(m.control)
            else:
                k.sync()
            return p + 1, ok

        pieces = self.plan.first.shape[0]
        return k.while_(lambda p, ok: (p < pieces) & (ok == 1), piece, 0, 1)[1]

    def _piece(self, p: Any) -> None:
        k, m, width = self.k, self.m, self.plan.rows[0][1]
        first = k.load(m.first, p, cache="nc")
        before = k.const(0) if m.before is None else k.load(m.before, p, cache="nc")
        member = k.lane & (self.shared - 1)

        def vertex(i):
            item = k.shr(i, self.shared.bit_length() - 1)
            at, batch = item // self.batches, item % self.batches
            there = at < width
            if self.run_from is None:
                place = p * self.plan.places + at
                there = there & (k.load(m.slot, place, mask=there, other=-1, cache="nc") >= 0)
            own = (first + at) * self.batches + batch
            chief = there & (member == 0)
            x = k.load(m.x, own, mask=chief, other=0, cache="fresh")
            state = self.fold.more(self.fold.start(), [[k.where(chief, x, self.identity)]])
            state = self._edges((p, before, at, batch), member, there, state)
            half = self.shared
            while half := half // 2:
                state = self.fold.joined(state, [k.shfl_xor(v, half) for v in state])
            k.store(m.x, own, *self.fold.result(state), mask=chief)

        k.spread_warps(width * self.batches * self.shared, vertex)

    def _edges(self, where: Any, member: Any, there: Any, state: Any) -> Any:
        """The state with the terms of every `shared`-th edge of a vertex, from `member` on."""
        k, m = self.k, self.m
        p, _, at, _ = where

        def some(r, going, *state):
            rows = k.several(IN_FLIGHT, lambda u: r + u * self.shared)
            mask = there & (rows < self.rows)
            start = rows * self.plan.rows[0][1]
            if len(self.plan.rows) > 1:  # widths fall from row to row
                mask = at < k.load(m.widths, rows, mask=mask, other=0, cache="nc")
                start = k.load(m.starts, rows, mask=mask, cache="nc")
            terms = self._terms(where, p * self.plan.places + start + at, rows, mask)
            state = self.fold.more(list(state), [[t] for t in terms])
            return r + IN_FLIGHT * self.shared, mask[IN_FLIGHT - 1], *state

        return k.while_(lambda r, going, *_: going, some, member, there, *state)[2:]

    def _terms(self, where: Any, place: Any, row: Any, mask: Any) -> Any:
        k, m = self.k, self.m
        p, before, _, batch = where
        if self.run_from is None:
            slot = k.load(m.slot, place, mask=mask, other=-1, cache="nc")
            mask = mask & (slot >= 0)
        else:
            slot = place + self.run_from
        if self.plan.source is None:
            source = before + row
        elif self.plan.before is None:
            source = k.load(m.source, place, mask=mask, cache="nc")
        else:
            source = before + k.load(m.source, p * self.rows + row, mask=mask, cache="nc")
        x = k.load(m.x, source * self.batches + batch, mask=mask, cache="fresh")
        a = k.load(m.values, slot * self.batches + batch, mask=mask, cache="nc")
        return k.where(mask, evaluate(k, self.mul, x, a), self.identity)
