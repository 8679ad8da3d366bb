"""Automata: composition and projection against lists of all paths, which know no semiring."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp

S = jsp.semirings
automaton, compose, project = jsp.automata.automaton, jsp.automata.compose, jsp.automata.project
STATES = 4


def random_automaton(rng, edges=7, labels=3):
    """Acyclic, with parallel edges and epsilons on both sides; the last state may not be final."""
    source = rng.integers(STATES - 1, size=edges)
    target = np.array([rng.integers(s + 1, STATES) for s in source])
    sides = rng.integers(labels, size=(2, edges))
    final = np.unique(rng.integers(1, STATES, 2))
    data = jnp.asarray(rng.integers(1, 5, edges), jnp.float32)
    return automaton(source, target, *sides, data, final=final)


def paths_of(A):
    """{(read, written): [values of a path's edges, ...]} of all paths to a final state."""
    found = {}

    def walk(v, read, written, edges):
        if v in np.asarray(A.final):
            found.setdefault((read, written), []).append(edges)
        for k in np.flatnonzero(A.source == v):
            x, y = int(A.input[k]), int(A.output[k])
            walk(A.target[k], read + (x,) * (x > 0), written + (y,) * (y > 0), [*edges, k])

    walk(A.start, (), (), [])
    return found


def composed(A, B):
    """{(x, z): [(path of A, path of B), ...]} that agree on what lies between."""
    found = {}
    for ((x, y), ps), ((w, z), qs) in itertools.product(paths_of(A).items(), paths_of(B).items()):
        if y == w:
            found.setdefault((x, z), []).extend(itertools.product(ps, qs))
    return {key: pairs for key, pairs in found.items() if pairs}


@pytest.mark.parametrize("seed", range(24))
def test_composition_has_one_path_for_each_pair_of_paths(seed):
    rng = np.random.default_rng(seed)
    A, B = random_automaton(rng), random_automaton(rng)
    C, want = compose(A, B, "plus_times"), composed(A, B)
    a, b = np.asarray(A.data), np.asarray(B.data)
    got = {key: sorted(np.prod(np.asarray(C.data)[p]) for p in ps)
           for key, ps in paths_of(C).items()}  # fmt: skip
    assert got == {
        key: sorted(a[p].prod() * b[q].prod() for p, q in pairs) for key, pairs in want.items()
    }
    pairs = list(itertools.chain(*want.values()))
    both = [(a[p].prod() * b[q].prod(), a[p].sum() + b[q].sum()) for p, q in pairs]
    assert float(C.total("plus_times")) == sum(w for w, _ in both)
    least = compose(A, B, "min_plus").total("min_plus")
    assert float(least) == min((c for _, c in both), default=np.inf)
    if pairs:  # every state that is left is on a path to the end
        assert set(range(C.states)) == {0, *C.source.tolist(), *C.target.tolist()}


def test_semirings_of_tuples_sum_over_the_paths_of_a_composition():
    rng = np.random.default_rng(3)
    for _ in range(8):
        A, B = random_automaton(rng), random_automaton(rng)
        pairs = list(itertools.chain(*composed(A, B).values()))
        a, b = np.asarray(A.data), np.asarray(B.data)
        costs = sorted(float(a[p].sum() + b[q].sum()) for p, q in pairs)
        C, best, count = compose(A, B, "min_plus"), S.k_best(4), S.counting(S.min_plus)
        found = C.with_data(best.lift(C.data)).total(best)[0]
        np.testing.assert_array_equal(found, (costs + [np.inf] * 4)[:4])
        lifted = compose(A.with_data(count.lift(A.data)), B.with_data(count.lift(B.data)), count)
        cost, number = lifted.total(count)
        assert (float(cost), int(number)) == (costs[0], costs.count(costs[0])) if costs else True


def test_gradients_pass_through_a_composition_under_jit():
    rng = np.random.default_rng(5)
    A, B = random_automaton(rng, 12), random_automaton(rng, 12)

    @jax.jit
    def log_total(a, b):
        return compose(A.with_data(a), B.with_data(b), "log_plus").total("log_plus")

    a, b = jnp.log(A.data), jnp.log(B.data)
    pairs = list(itertools.chain(*composed(A, B).values()))
    weights = np.array([np.exp(a[jnp.array(p, int)].sum() + b[jnp.array(q, int)].sum())
                        for p, q in pairs])  # fmt: skip
    share = np.zeros(12)
    for (p, _), w in zip(pairs, weights / weights.sum(), strict=True):
        share[p] += w
    np.testing.assert_allclose(log_total(a, b), np.log(weights.sum()), 1e-5)
    np.testing.assert_allclose(jax.grad(log_total)(a, b), share, 1e-4, 1e-6)
    check_grads(log_total, (a, b), 2, atol=2e-2, rtol=2e-2)


def test_a_projection_reads_and_writes_one_side():
    A = random_automaton(np.random.default_rng(1))
    for side, at in (("input", 0), ("output", 1)):
        P = project(A, side)
        want = {}
        for words, paths in paths_of(A).items():
            want.setdefault((words[at],) * 2, []).extend(paths)
        got = paths_of(P)
        assert {k: sorted(v) for k, v in got.items()} == {k: sorted(v) for k, v in want.items()}
        assert float(P.total("plus_times")) == float(A.total("plus_times"))


def test_cycles_of_epsilon_are_summed_by_a_star():
    """A reads a, B writes any number of b behind it, each for a half: 1 / (1 - 1/2)."""
    A = automaton([0], [1], [1], data=jnp.ones(1), final=1)
    B = automaton([0, 1], [1, 1], [1, 0], [1, 2], jnp.array([1.0, 0.5]), final=1)
    C = compose(A, B, "plus_times")
    x = jsp.closure(C.matrix("plus_times"), "plus_times", start=0, star=lambda a: 1 / (1 - a)).x
    np.testing.assert_allclose(x[C.final].sum(), 2)


def test_nothing_in_common_is_an_automaton_without_edges():
    A, B = (automaton([0], [1], [label], final=1) for label in (1, 2))
    C = compose(A, B, "min_plus")
    assert repr(C) == "Automaton(1 states, 0 edges)" and float(C.total("min_plus")) == np.inf
    same = compose(automaton([], [], [], final=0), automaton([], [], [], final=0), "min_plus")
    assert float(same.total("min_plus")) == 0


def test_a_final_state_named_twice_counts_once():
    A = automaton([0], [1], [1], data=jnp.full(1, 3.0), final=[1, 1])
    assert A.final.tolist() == [1] and float(A.total("plus_times")) == 3


def test_wrong_edges_are_refused():
    with pytest.raises(ValueError, match="one length"):
        automaton([0], [1, 2], [1], final=1)
    with pytest.raises(ValueError, match="`input` must lie in"):
        automaton([0], [1], [-1], final=1)
    with pytest.raises(ValueError, match="`output` must lie in"):  # it was read as 1
        automaton([0], [1], [1], np.array([2**32 + 1]), final=1)
    with pytest.raises(TypeError, match="`start` must be integers"):
        automaton([0], [1], [1], final=1, start=0.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="`source` must be integers"):
        automaton(np.array([0.5]), [1], [1], final=1)
    with pytest.raises(ValueError, match=r"leaves \(1, ...\)"):
        automaton([0], [1], [1], data=jnp.ones(2), final=1)
    A = automaton([0], [1], [1], final=1)
    with pytest.raises(ValueError, match="`side`"):
        project(A, "both")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="capture it in the jitted function"):
        jax.jit(lambda A: compose(A, A, "min_plus").data)(A)
    with pytest.raises(ValueError, match="`data` alone may be traced"):
        jax.jit(lambda s: automaton(s, [1], [1], final=1).data)(jnp.array([0]))


@pytest.mark.parametrize("format", ["coo", "csc", "ell", "tiled", "twice"])
def test_closure_of_any_format_and_of_entries_that_come_twice(format):
    D = np.triu(np.random.default_rng(0).uniform(0.2, 0.9, (9, 9)), 1).astype(np.float32)
    A = jsp.from_dense(D)
    if format == "twice":
        c = A.to_coo()
        data, row, col = (jnp.concatenate([v, v]) for v in (c.data / 2, c.row, c.col))
        A = jsp.formats.COO(data, row, col, c.overflow, A.shape, sorted=False, unique=False)
    else:
        A = A.asformat(format)
    found = jsp.closure(A, "plus_times", start=2).x
    np.testing.assert_allclose(found, np.linalg.inv(np.eye(9) - D)[2], 1e-5, 1e-7)
