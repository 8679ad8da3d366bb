"""Composed and projected automata, against all pairs of their paths in plain Python.

The oracle lists walks as steps (label read, label written, number), lets two walks pass the labels
between them together, and sums what the numbers of the steps multiply to.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from ..cases import Case, Fuzzer

S, M = jsp.semirings, jsp.automata
K, LONGEST = 3, 4  # best paths that are asked for; steps of a walk where there are cycles
SQUARES = jsp.semiring(  # its multiplication does not commute
    jsp.monoid(lambda a, b: (a[0] + b[0],), (np.zeros((2, 2), np.float32),)),
    lambda a, b: (a[0] @ b[0],),
    one=(np.eye(2, dtype=np.float32),),
)


def _squares(cost):
    c = jnp.asarray(cost)
    return (jnp.stack([jnp.stack([c, c - 2], -1), jnp.stack([0 * c + 1, c % 2], -1)], -2),)


def _square(c):
    return np.array([[c, c - 2], [1, c % 2]])


def _best(costs):
    best = min(costs, default=math.inf)
    return best, costs.count(best) if costs else 0


def _spread(costs):
    weights = [math.exp(-c) for c in costs]
    if not weights:
        return -math.inf, 0.0
    total = sum(weights)
    return math.log(total), -sum(w / total * math.log(w / total) for w in weights)


def _product(numbers):
    return functools.reduce(lambda x, y: x @ y, map(_square, numbers), np.eye(2))


CASES: dict[str, Any] = {  # name -> (semiring, values of edges, oracle of lists of numbers)
    "min_plus": (S.min_plus, lambda c: c, lambda ps: min(map(sum, ps), default=math.inf)),
    "plus_times": (S.plus_times, lambda c: c, lambda ps: sum(map(math.prod, ps))),
    "log_plus": (S.log_plus, lambda c: -c, lambda ps: _spread([*map(sum, ps)])[0]),
    "counting": (
        S.counting(S.min_plus),
        S.counting(S.min_plus).lift,
        lambda ps: _best([*map(sum, ps)]),
    ),
    "entropy": (S.entropy(), lambda c: S.entropy().lift(-c), lambda ps: _spread([*map(sum, ps)])),
    "k_best": (  # lifted once composed
        S.k_best(K),
        lambda c: c,
        lambda ps: np.array(sorted([*map(sum, ps)] + [math.inf] * K)[:K]),
    ),
    "squares": (SQUARES, _squares, lambda ps: sum(map(_product, ps), np.zeros((2, 2)))),
}


def drawn(rng: np.random.Generator, cycles: bool) -> tuple[Any, list]:
    """An automaton of costs, and its edges as (from, to, read, written, cost)."""
    states, edges = int(rng.integers(1, 5)), int(rng.integers(0, 5 if cycles else 8))
    names = rng.permutation(states + int(rng.integers(2)))[:states]  # one may have no edges
    source, target = names[np.sort(rng.integers(states, size=(2, edges)), 0)]
    if cycles:
        source, target = rng.permuted(np.stack([source, target]), axis=0)
    else:
        source, target = source[source != target], target[source != target]
    labels = np.array([0, 1, 2 if rng.integers(4) else 2**30])
    read, written = labels[rng.integers(rng.integers(1, 4), size=(2, source.size))]
    final = names[rng.integers(states, size=rng.integers(0, 4))]
    start = int(names[0])
    cost = rng.integers(1, 4, source.size).astype(np.float32)
    A = M.automaton(source, target, read, written, jnp.asarray(cost), final=final, start=start)
    rows = zip(*(v.tolist() for v in (source, target, read, written, cost)), strict=True)
    return A, [*rows]


def walks(A, edges, longest=99):
    """The walks of at most so many steps from the start to a final state, as (read, written, cost)
    of each step."""
    ends, found = set(np.asarray(A.final).tolist()), []

    def walk(v, steps):
        found.extend([steps] if v in ends else [])
        for source, target, read, written, cost in edges if len(steps) < longest else []:
            if source == v:
                walk(target, [*steps, (read, written, [cost])])

    walk(A.start, [])
    return found


def together(p, q):
    """The steps of two walks, or None where the first writes what the second does not read."""
    found, q = [], [*q]
    for read, written, cost in p:
        while written and q and not q[0][0]:
            found.append((0, *q.pop(0)[1:]))
        if written and not (q and q[0][0] == written):
            return None
        _, last, other = q.pop(0) if written else (0, 0, [])
        found.append((read, last, [*cost, *other]))
    return None if any(read for read, *_ in q) else found + [(0, *step[1:]) for step in q]


def pairs(ps, qs, longest=99):
    both = (together(p, q) for p, q in itertools.product(ps, qs))
    return [p for p in both if p is not None and len(p) <= longest]


def projected(ps, side):
    return [[(step[side], step[side], step[2]) for step in p] for p in ps]


def _sum(C, name, longest):
    semiring = CASES[name][0]
    C = C.with_data(semiring.lift(C.data)) if name == "k_best" else C
    if longest is None:
        return C.total(semiring)
    until = jsp.until.max_iterations(longest)
    x = jsp.closure(C.matrix(semiring), semiring, start=C.start, until=until).x
    return semiring.add.reduce(jax.tree.map(lambda v: v[C.final], x), 0)


def _compare(found, ps, name):
    numbers = [list(itertools.chain(*(cost for *_, cost in p))) for p in ps]
    want = CASES[name][2](numbers)
    found = found[0] if name in ("k_best", "squares") else found
    jax.tree.map(lambda f, w: np.testing.assert_allclose(f, w, 1e-4, 1e-4), found, want)


def _words(ps):
    return sorted((tuple(r for r, *_ in p if r), tuple(w for _, w, _ in p if w)) for p in ps)


def run(case: Case) -> tuple[str, ...]:
    """Raises where a sum over a composition is not the sum over the pairs of paths."""
    rng, name, way = np.random.default_rng(case["seed"]), case["semiring"], case["way"]
    longest = LONGEST if way == "cycles" else None
    (A, a), (B, b), (C, c) = (drawn(rng, way == "cycles") for _ in range(3))
    ps, qs, rs = (walks(X, x, longest or 99) for X, x in ((A, a), (B, b), (C, c)))
    semiring = S.min_plus if name == "k_best" else CASES[name][0]
    A, B, C = (X.with_data(CASES[name][1](X.data)) for X in (A, B, C))
    want = pairs(ps, qs, longest or 99)
    if way == "lanes":

        def total(x, y):
            return _sum(M.compose(A.with_data(x), B.with_data(y), semiring), name, None)

        stacked = jax.tree.map(lambda v: jnp.stack([v, v]), (A.data, B.data))
        for found in (jax.jit(jax.vmap(total))(*stacked), jax.vmap(total)(*stacked)):
            _compare(jax.tree.map(lambda v: v[1], found), want, name)
        return ("pairs of paths",)
    if way == "alone":
        found, want = A, ps
    elif way == "left":
        found, want = M.compose(M.compose(A, B, semiring), C, semiring), pairs(want, rs)
    elif way == "right":
        found, want = M.compose(A, M.compose(B, C, semiring), semiring), pairs(ps, pairs(qs, rs))
    elif way == "projected":
        side = int(rng.integers(2))
        found = M.project(M.compose(A, B, semiring), ("input", "output")[side])
        found, want = M.compose(found, C, semiring), pairs(projected(want, side), rs)
    else:
        found = M.compose(A, B, semiring)
    rows = np.stack([found.source, found.target, found.input, found.output]).T.tolist()
    listed = [(*row, 1.0) for row in rows]
    assert _words(walks(found, listed, longest or 99)) == _words(want)
    if way != "alone":
        assert set(range(found.states)) == {0, *found.source.tolist(), *found.target.tolist()}
    _compare(_sum(found, name, longest), want, name)
    return ("pairs of paths",)


FUZZER = Fuzzer(
    {
        "semiring": tuple(CASES),
        "way": ("alone", "pair", "cycles", "projected", "left", "right", "lanes"),
    },
    run,
)
