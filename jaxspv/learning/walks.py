"""`random_walk`: walks of a fixed length along edges, biased as in node2vec."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.programs import one_program
from .._core.indices import lower_bound
from .._core.loops import batch_any, scan, while_loop
from .._core.platforms import default_promotion
from ..generators.graphs import check_key, check_size
from ..graph import Graph, as_graph
from ..ops.write_rule.entries import take
from ..shapes import Int, Key, Matrix, Sources
from .neighbors import below, bits, check_nodes, rows_of

MISSED = 24.0  # a step is accepted but for odds of e^-24
MOST_TRIALS = 4096


def random_walk(
    key: Key, G: Matrix, starts: Sources, length: int, *, p: float = 1.0, q: float = 1.0
) -> Int[Array, "*sources steps"]:
    """Walks of `length` steps: to a uniform out-neighbour, or as in node2vec.

    From v, reached from t, the walk goes to a neighbour x with odds in proportion to 1/p if x is t,
    to 1 if there is an edge t -> x, to 1/q else; its first step is uniform.

    Args:
        key: `jax.random.key`; equal keys give equal walks on every platform.
        G: square matrix or `Graph`; A[i, j] the edge i -> j.
        starts: int array of vertices.
        length: steps, a Python integer.
        p: return parameter, above 0: large ones keep the walk from going back.
        q: in-out parameter, above 0: large ones keep it near.

    Returns:
        int32 (*shape of starts, length + 1): the vertices, the start first; n from where a walk has
        no edge to go on.

    Raises:
        TypeError: `starts` are no integers, `length` is none, G is no matrix.
        ValueError: `length` is negative, p or q not above 0 and finite, a concrete start out of
            range.

    Cost: O(length) for each walk; with p or q by rejection, `max / min` of (1/p, 1, 1/q) trials
    a step, each a binary search in a row. A step without an accepted trial in 24 times as many
    (odds of e^-24; 4,096 at most) draws one of the trials by their biases, so that no loop is
    endless: where the bias is extreme, neighbours that no trial proposed are left out.

    Source: Grover, Leskovec, "node2vec: scalable feature learning for networks", KDD 2016.

    >>> import jax, jaxspv as jsp
    >>> path = jsp.from_edges([0, 1, 2], [1, 2, 3], shape=(4, 4))
    >>> random_walk(jax.random.key(0), path, [0, 2], 3).tolist()
    [[0, 1, 2, 3], [2, 3, 4, 4]]
    """
    G = as_graph(G, "`random_walk`", ())
    check_size("length", length, 2**31 - 2)
    for name, value in (("p", p), ("q", q)):
        if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
            raise ValueError(f"`{name}` must be a Python number above 0; got {value!r}.")
    nodes = check_nodes("starts", starts, G.n)
    how = {"length": int(length), "p": float(p), "q": float(q)}
    return one_program(_walked, check_key(key), G, nodes, **how)


@functools.partial(jax.jit, static_argnums=(3, 4, 5))
@default_promotion()
def _walked(key, G: Graph, starts, length, p, q) -> Array:
    def step(state, key):
        before, at = state
        first, degree = rows_of(G, at)
        if (p, q) == (1, 1):
            after = _neighbour(G, first, degree, bits(key, at.shape))
        else:
            after = _biased(key, G, before, first, degree, p, q)
        return (at, after), after

    at = starts.ravel()
    nowhere = jnp.full_like(at, G.n)
    _, path = scan(step, (nowhere, at), jax.random.split(key, length))
    return jnp.concatenate([at[None], path]).T.reshape(*starts.shape, length + 1)


def _neighbour(G: Graph, first: Array, degree: Array, draw: Array) -> Array:
    slot = first + below(draw, degree)
    return jnp.where(degree > 0, take(G.out.indices, slot), G.n).astype(jnp.int32)


def _biased(key, G: Graph, before, first, degree, p, q) -> Array:
    """A uniform neighbour, accepted with odds in proportion to its bias; again until it is.

    Where none is, the trial of the least `wait` / bias: that race is won in proportion to biases.
    """
    biases = np.array([1 / p, 1.0, 1 / q])  # of the way back, to a common neighbour, away
    most = biases.max()
    limits = np.round(biases / most * 2**31).astype(np.uint32)  # of 31-bit draws
    trials = min(math.ceil(MISSED * most / biases.min()), MOST_TRIALS)
    low, count = rows_of(G, before)

    def adjacent(x):
        slot = lower_bound((G.out.indices,), (x,), low, low + count)
        return (slot < low + count) & (take(G.out.indices, slot) == x)

    def trial(state):
        k, x, done, least = state
        where, odds = bits(jax.random.fold_in(key, k), (2, *first.shape))
        other = _neighbour(G, first, degree, where)
        kind = jnp.where(other == before, 0, jnp.where(adjacent(other), 1, 2))
        accepted = (before >= G.n) | ((odds >> 1) < jnp.asarray(limits)[kind])
        wait = (~odds >> 1) / jnp.asarray(biases / biases.min(), jnp.float32)[kind]
        better = ~done & (accepted | (wait < least))
        return k + 1, jnp.where(better, other, x), done | accepted, jnp.minimum(wait, least)

    def some_left(state):
        return (state[0] < trials) & batch_any(jnp.any(~state[2]))

    none = jnp.full_like(first, G.n)
    start = jnp.int32(0), none, degree == 0, jnp.full(first.shape, jnp.inf, jnp.float32)
    return while_loop(some_left, trial, start)[1]
