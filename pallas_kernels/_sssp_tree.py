"""The tree of shortest paths that the wide kernel leaves: from what lowered each label.

Whoever lowers a label notes the edge, without any order among those who do so at the same time: the
note that stays may be of a label that was lowered again. So every note is checked once all labels
are final: its edge must be tight and its tail strictly nearer. The few vertices whose note is not
like that look for such an edge among their in-edges. That costs a few gathers a vertex where
looking at every edge once more costs one an edge.
"""

from pallas_kernels._sssp_rounds import INFINITY, ORPHANS, put, reserve, tight

LONG = 2048  # edges from which a row is searched by a program, not by a warp


def tree(k, c, graph, state):
    """Writes state.parents; returns whether no barrier expired.

    The source is its own parent, unreached vertices have -1, those without a strictly nearer tight
    predecessor n. The list of orphans lies in the near queue, which is empty.
    """
    step = k.programs * k.threads

    def check(i0):
        v = i0 + k.lane
        there = v < c.n
        parent, slot = k.load_vec(state.noted, 2 * v, 2, mask=there, other=c.n, cache="fresh")
        label = k.load(state.labels, v, mask=there)
        known = k.below(parent, c.n)
        above = k.load(state.labels, parent, mask=known)
        weight = k.load(graph.weights, slot, mask=known, cache="nc")
        fine = known & tight(k, c, above, weight, label)
        reached = label != INFINITY[c.real]
        parent = k.where(fine, parent, k.where(v == state.source, v, k.where(reached, c.n, -1)))
        k.store(state.parents, v, parent, mask=there)

        def store(at, vertex, mask):
            k.store(state.queue, at, vertex, mask=mask)

        lost = there & (parent == c.n)
        put(k, [v], [lost], lambda total: reserve(k, state.control, ORPHANS, total), store)

    k.for_((k.warp * k.programs + k.program) * 32, c.n, step, check)
    ok, orphans = k.grid_barrier(state.control, [(state.control, ORPHANS)])
    adopt = _from_own_row if c.symmetric else _from_all_rows
    k.if_(orphans > 0, lambda: adopt(k, c, graph, state, orphans))
    return ok


def _row(k, graph, v):
    return (k.load(graph.indptr, v + j, cache="nc") for j in range(2))


def _from_own_row(k, c, graph, state, orphans):
    """Every edge is there in both directions, so the rows of the orphans tell."""

    def search(v, first, end, step):
        label = k.load(state.labels, v)

        def edge(e):
            near = k.load(graph.indices, e, cache="nc")
            weight = k.load(graph.weights, e, cache="nc")
            above = k.load(state.labels, near)
            k.store(state.parents, v, near, mask=tight(k, c, above, weight, label))

        k.for_(first, end, step, edge)

    def by_warp(i):
        v = k.load(state.queue, i, cache="fresh")
        start, end = _row(k, graph, v)
        k.if_(end - start < LONG, lambda: search(v, start + k.lane, end, 32))

    def by_program(i):
        v = k.load(state.queue, i, cache="fresh")
        start, end = _row(k, graph, v)
        k.if_(end - start >= LONG, lambda: search(v, start + k.thread, end, k.threads))

    warps = k.threads // 32 * k.programs
    k.for_(k.warp * k.programs + k.program, orphans, warps, by_warp)
    k.for_(k.program, orphans, k.programs, by_program)


def _from_all_rows(k, c, graph, state, orphans):
    """All edges are looked at, a warp a row."""
    del orphans

    def row(u):
        label = k.load(state.labels, u)
        start, end = _row(k, graph, u)

        def edge(e):
            v = k.load(graph.indices, e, cache="nc")
            there = k.below(v, c.n)
            weight = k.load(graph.weights, e, mask=there, cache="nc")
            below = k.load(state.labels, v, mask=there)
            lost = k.load(state.parents, v, mask=there, cache="fresh") == c.n
            k.store(state.parents, v, u, mask=there & lost & tight(k, c, label, weight, below))

        k.for_(start + k.lane, end, 32, edge)

    k.for_(k.warp * k.programs + k.program, c.n, k.threads // 32 * k.programs, row)
