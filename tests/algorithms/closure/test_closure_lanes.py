"""Closures of values with and without lanes, in every kind of pieces, against an inverse."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algorithms.closure import pieces
from jaxspv.algorithms.closure.pieces import plan
from jaxspv.ops.tuples.operations import as_tuples


def layers(steps, states):
    return np.kron(np.eye(steps, k=1), np.ones((states, states))) > 0


def scattered(n, edges):
    """A random acyclic pattern whose vertices have few edges, and in no order."""
    rng = np.random.default_rng(0)
    D = np.triu(rng.random((n, n)) < edges / n, 1)
    order = rng.permutation(n)
    return D[np.ix_(order, order)]


def hubs(n):
    """All vertices lead to two of them."""
    D = np.triu(np.random.default_rng(0).random((n, n)) < 1 / n, 1)
    D[: n // 2, n // 2] = D[:-1, -1] = True
    return D


KINDS = {"layers": layers(4, 3), "rows": scattered(40, 3), "edges": hubs(60)}


@pytest.mark.parametrize("family", ["log_plus", "entropy"])
@pytest.mark.parametrize("kind", KINDS)
def test_lanes(family, kind):
    D = KINDS[kind]
    A = jsp.from_dense(D.astype(np.float32))
    found = plan(as_tuples("A", A))
    assert found is not None
    pieces = found[0]
    taken = "layers" if pieces.first is None else "edges" if pieces.rows is None else "rows"
    assert taken == kind
    W = np.random.default_rng(1).uniform(0.1, 0.5, (3, *D.shape)) * D
    start = int(np.flatnonzero(~D.any(0) & D.any(1))[0])
    want = np.array([np.linalg.inv(np.eye(len(D)) - w)[start] for w in W])
    entropy = jsp.semirings.entropy()
    assert entropy.lift is not None
    lift = entropy.lift

    def sums(w):
        if family == "log_plus":
            return jnp.exp(jsp.closure(A.with_data(w), family, start=start).x)
        return jnp.exp(jsp.closure(A.with_data(lift(w)), entropy, start=start).x[0])

    w = jnp.log(jnp.asarray(W[:, *A.rowcol()], jnp.float32))
    close = 1e-5, 1e-7
    np.testing.assert_allclose(jax.vmap(sums)(w), want, *close)
    np.testing.assert_allclose(jax.vmap(sums)(w[:1]), want[:1], *close)
    np.testing.assert_allclose(sums(w[1]), want[1], *close)
    both = jax.vmap(jax.vmap(sums))(jnp.stack([w, w[::-1]]))
    np.testing.assert_allclose(both, np.stack([want, want[::-1]]), *close)


def cost(needed, cuts):
    """Places and groups of rows that are cut there."""
    ends = [*cuts, len(needed)]
    return sum(needed[i] * (j - i) + pieces.GROUP for i, j in itertools.pairwise(ends))


def test_groups_of_rows_cost_the_least():
    rng = np.random.default_rng(0)
    for most in (2, 70, 300) * 5:
        needed = np.sort(rng.integers(1, most + 1, 8))[::-1]
        found = pieces._grouped(needed)
        starts = np.cumsum(found[:, 0]) - found[:, 0]
        assert found[:, 0].sum() == 8
        assert found[:, 1].tolist() == needed[starts].tolist()
        inner = (c for k in range(8) for c in itertools.combinations(range(1, 8), k))
        assert cost(needed, starts) == min(cost(needed, [0, *c]) for c in inner)


def test_a_vertex_of_many_edges_is_planned_in_less_than_their_square():
    n = 100_000  # the square of it would take the better part of an hour
    A = jsp.from_edges(np.arange(n), np.full(n, n), shape=(n + 1, n + 1))
    x = jsp.closure(A, "min_plus", start=jnp.arange(n + 1.0) + 3).x
    np.testing.assert_array_equal(x, np.append(np.arange(n) + 3, 4))
