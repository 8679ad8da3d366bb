"""What calls refuse, by what they say: errors that no other test meets in every run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse
from jax.sharding import PartitionSpec

import jaxspv as jsp

A = jsp.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0], shape=(3, 3))
PATH, PAIR = jsp.from_edges([0, 1], [1, 2], shape=(3, 3)), jsp.from_edges([0, 1], [1, 0])
WIDE, X, Y = jsp.from_dense(np.ones((2, 3), "f")), jnp.ones(3), jnp.ones((3, 2))
BEST = jsp.semirings.k_best(2)
FEW = jsp.until.max_iterations(2)


def mesh():
    return jax.make_mesh((1,), ("x",))


def path_to(parents):
    return jsp.bfs(PATH, 0)._replace(parents=parents).path_to(1)


def ordered(old, y, *_):
    jax.debug.callback(print, old, ordered=True)
    return y


VALUES = {
    "must not be zero everywhere": [
        lambda: jsp.eigenvector_centrality(A, start=np.zeros(3)),
        lambda: jsp.pagerank(A, personalization=np.zeros(3)),
    ],
    "must be square": [lambda: jsp.closure(WIDE, "min_plus"), lambda: jsp.plot.draw(WIDE)],
    "over tuples `fixpoint` solves": [
        lambda: jsp.fixpoint(A.with_data(BEST.lift(A.data)), BEST.lift(X), BEST)
    ],
    "`start` must be a vertex in": [lambda: jsp.closure(A, "min_plus", start=9)],
    "a closure by `star` is dense": [
        lambda: jsp.closure(jsp.from_edges([0, 1], [1, 0], shape=(10**6,) * 2), "plus_times")
    ],
    "`k` must be 2 or more": [lambda: jsp.k_truss(PAIR, 1)],
    "must be a vertex or 1-D array": [lambda: jsp.bfs(A, [[0]])],
    "`source` must be a number or an array of numbers": [lambda: jsp.bfs(A, [[0], [0, 1]])],
    "`vertices` must be a number or an array of numbers": [
        lambda: jsp.eccentricity(A, [[0], [0, 1]])
    ],
    "`path_to` needs parents": [lambda: path_to(None)],
    "`path_to` is of one source": [lambda: path_to(np.zeros((2, 3), np.int32))],
    "lead around a cycle": [lambda: path_to(np.array([0, 2, 1]))],
    "must be element-wise": [
        lambda: jsp.fixpoint(A, X, update=ordered, sums={"a": lambda x: x[:2]})
    ],
    "must have no cycle": [lambda: jsp.transitive_reduction(A)],
    "must be one vertex": [lambda: jsp.k_shortest_paths(A, [0], 1, 2)],
    "must not fall by more than a weight": [
        lambda: jsp.astar(PATH, 0, 2, heuristic=np.array([9.0, 0.0, 0.0]))
    ],
    "`u` and `v` must be alike": [lambda: jsp.similarity(A, [0, 1], [0])],
    "`delta` must be positive": [lambda: jsp.sssp(A, 0, delta=-1.0)],
    "`values` must be one number an edge": [
        lambda: jsp.from_edges([0, 1], [1, 2], [[1.0], [1.0, 2.0]], shape=(3, 3))
    ],
    "without batch or dense dimensions": [
        lambda: jsp.io.from_bcsr(sparse.BCSR.fromdense(jnp.ones((2, 2, 2)), n_batch=1))
    ],
    "before it is padded": [lambda: jsp.pad(jsp.pad(A, n=8), n=16)],
    "`n` must be from": [lambda: jsp.pad(A, n=1)],
    "grid needs int64 indices": [lambda: jsp.generators.grid2d(2**16, 2**16)],
    "`n` must be a scalar": [lambda: A.power([1, 2])],
    "integers have no powers of -2": [lambda: A.astype(bool) ** -2],
    "must be a scalar or a vector": [lambda: A.setdiag(np.ones((2, 2)))],
    "`nt` must be positive": [lambda: jsp.plot.tiles(A, nt=0)],
    "`until` of bfs understands": [lambda: jsp.bfs(A, 0, until=jsp.until.residual(1e-3))],
    "`shard` takes no ghosts": [lambda: jsp.shard(jsp.pad(A, n=8), mesh())],
    "one for columns": [lambda: jsp.shard(A, mesh(), PartitionSpec("x", None, None))],
    "`trim` needs concrete values": [lambda: jax.jit(lambda B: B.trim().data)(A)],
}
TYPES = {
    "`damping` must be a real number": [lambda: jsp.pagerank(A, damping=1j)],
    "`method` must be a single value of Python": [
        lambda: jsp.bfs(A, 0, method=[1]),
        lambda: jsp.eccentricity(A, method=[1]),
    ],
    "`star` must be a function": [lambda: jsp.closure(A, "min_plus", star=3)],
    "takes real weights": [lambda: jsp.sssp(A.astype(np.complex64), 0)],
    "`operands` must be a tuple": [lambda: jsp.fixpoint(A, X, operands=3.0)],
    "`update` must be a function": [lambda: jsp.fixpoint(A, X, update=3)],
    "`sums` must be a dictionary": [lambda: jsp.fixpoint(A, X, sums=3)],
    r"`sums\['a'\]` must be a function": [lambda: jsp.fixpoint(A, X, sums={"a": 3})],
    "has a floating-point leaf": [lambda: jsp.grad(lambda B: 0.0)(A.astype(np.int32))],
    "`values` must be numbers": [
        lambda: jsp.from_edges([0], [1], np.array(["a"]), shape=(3, 3)),
        lambda: jsp.vector_from_entries([0], np.array(["a"]), 3),
    ],
    "`score` must be a function": [lambda: jsp.learning.attention(A, Y, Y, Y, score=3)],
    "takes no `left` or `right`": [lambda: jsp.apply(A, jsp.operators.abs, left=2)],
    "`op` must be an operator or a function": [lambda: jsp.apply(A, 3)],
    "`left` must be a scalar": [lambda: jsp.apply(A, jsp.operators.plus, left=[1, 2])],
    "`out` must be an array, as X is": [lambda: jsp.mxm(A, Y, out=A)],
    "takes numbers": [lambda: jsp.monoids.plus.like((1.0, 2.0))],
    "`mesh` must be a jax.sharding.Mesh": [lambda: jsp.shard(A, 3)],
    "`spec` must be a PartitionSpec": [lambda: jsp.shard(A, mesh(), 3)],
}
MISSING = {"`ordered=True`": [lambda: jsp.fixpoint(A, X, update=ordered, until=FEW)]}
KINDS = {ValueError: VALUES, TypeError: TYPES, NotImplementedError: MISSING}


@pytest.mark.parametrize(
    "kind, said, call",
    [(k, said, c) for k, group in KINDS.items() for said, calls in group.items() for c in calls],
)
def test_what_is_refused_says_what_would_be_right(kind, said, call):
    with pytest.raises(kind, match=said):
        call()
