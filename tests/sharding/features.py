"""Checks of vectors and matrices that lie with their vertices, of sharded graphs inside of the
caller's own `shard_map`, closed over by a program, with operands of other kinds; `program.py` runs
them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from sharded_calls import exact, refused, same

import jaxspv as jsp
from jaxspv.algebra.semirings import as_semiring
from jaxspv.ops.products.mesh import multiplied_row_sharded, on_mesh
from jaxspv.ops.products.mesh_gpu import in_chunks, in_place
from pallas_kernels.simt.device import Grid, launching


def dealt(mesh_of, A):
    """Products of them, slopes, what is refused."""
    rng = np.random.default_rng(0)
    x, X = jnp.asarray(rng.random(80), jnp.float32), jnp.asarray(rng.random((80, 3)), jnp.float32)

    def run(G, x, X, backend=None):
        one, many = G.deal(x), G.deal(X)
        found = jsp.mxv(G, one), jsp.vxm(one, G, "min_plus", backend=backend), G @ many
        return [G.gather(y) for y in (*found, jsp.mxm(G, many, "max_min"), one)]

    want = [A @ x, jsp.vxm(x, A, "min_plus"), A @ X, jsp.mxm(A, X, "max_min"), x]
    for name in ("two", "columns", "both"):
        G = jsp.shard(A, *mesh_of(name))
        got = jax.jit(run)(G, x, X)
        for g, w in zip(got, want, strict=True):
            same(g, w, rtol=1e-6)
        multiply = jsp.sharding.row_sharded_mxm
        for product in (multiply, jax.jit(multiply)):
            Y = product(G, X)
            assert Y.sharding.is_equivalent_to(G.part.sharding, 4)
            same(Y, G.deal(A @ X), rtol=1e-6)
        same(G.gather(jsp.sharding.row_sharded_mxm(G, X, "max_min")), want[3])
        slope = jax.grad(lambda X, G=G: jnp.sum(jnp.square(multiply(G, X))))(X)
        same(slope, 2 * (A.T @ (A @ X)), rtol=1e-5)
    assert G.deal(X).sharding.is_equivalent_to(G.part.sharding, 4)
    same(jsp.mxm(G, np.asarray(G.deal(X))), G.deal(A @ X), rtol=1e-6)
    body = functools.partial(multiplied_row_sharded, columns=2)
    parts = on_mesh(body, G, as_semiring("plus_times"), values=G.deal(X), whole=False)
    same(G.gather(parts), A @ X, rtol=1e-6)
    slope = jax.jit(jax.grad(lambda X: jnp.sum(jnp.square(G @ X))))(G.deal(X))
    same(G.gather(slope), 2 * (A.T @ (A @ X)), rtol=1e-5)
    cases = (
        ("rows, one a vertex", lambda: G.deal(x[1:])),
        ("and more", lambda: G.gather(x)),
        ("`G.deal` gives", lambda: jsp.mxm(G, X[None, None])),
        ("`G.deal` gives", lambda: jsp.mxm(G.deal(X), G)),
    )
    refused((ValueError, *case) for case in cases)
    refused([(TypeError, "must be a ShardedGraph", lambda: multiply(A, X))])
    refused([(TypeError, "must be a ShardedGraph", lambda: multiply(X.T, G))])
    explicit(mesh_of, A, X)
    kernels(mesh_of, A, rng)


def explicit(mesh_of, A, X):
    """Explicit axes: a product is dealt too, in an eager call and under jit."""
    want, kept = A @ X, jax.jit(jsp.sharding.row_sharded_mxm)
    for name in ("two", "blocks"):
        mesh, spec = mesh_of(name, AxisType.Explicit)
        G = jsp.shard(A, mesh, spec)
        with jax.set_mesh(mesh):
            for product in (jsp.mxm, jax.jit(jsp.mxm)):
                Y = product(G, G.deal(X))
                assert Y.sharding.is_equivalent_to(G.part.sharding, 4)
                same(G.gather(Y), want, rtol=1e-6)
                Y = jsp.sharding.row_sharded_mxm(G, X) if product is jsp.mxm else kept(G, X)
                assert Y.sharding.is_equivalent_to(G.part.sharding, 4)
                same(G.gather(Y), want, rtol=1e-6)
        same(G.gather(jsp.mxm(G, G.deal(X))), want, rtol=1e-6)


def kernels(mesh_of, A, rng):
    """Those of all devices, interpreted together: one chunk of columns, or some."""
    row, col = A.rowcol()
    transposed = jsp.from_edges(np.append(row, col), np.append(col, row), shape=A.shape)
    for name, columns, B, symmetric, semiring in (
        ("two", 3, A, False, "plus_times"),
        ("two", 37, transposed, True, "min_plus"),
        ("four", 132, transposed, True, "plus_times"),
    ):
        X = jnp.asarray(rng.integers(0, 9, (80, columns)), jnp.float32)
        G = jsp.shard(B, *mesh_of(name), symmetric=symmetric)
        want = jsp.mxm(B, X, semiring)
        for run, operand in ((in_chunks, G.deal(X)), (in_place, X)):
            with launching(Grid(2, 128, interpret=True)):
                run = jax.jit(functools.partial(run, flip=False))
                got = run(G, operand, as_semiring(semiring))
            exact(G.gather(got), want)


def inside(mesh_of, A):
    """Row-sharded arrays there; the derivative of PageRank, whose solver must end everywhere."""
    rng, dense = np.random.default_rng(0), np.asarray(A.todense(), float)
    n = A.shape[0]
    weights, X = rng.random(n), np.asarray(rng.integers(0, 5, (n, 2)), np.float32)
    row, col = (np.asarray(v)[: int(A.nnz)] for v in A.rowcol())

    def loss(matrix):
        total = matrix.sum(1)
        share = np.divide(matrix, total[:, None], where=total[:, None] > 0, out=0 * matrix)
        share[total == 0] = 1 / n
        return weights @ np.linalg.solve(np.eye(n) - 0.85 * share.T, np.full(n, 0.15 / n))

    for name in ("two", "blocks"):
        mesh, spec = mesh_of(name)
        G = jsp.shard(A, mesh, spec)
        how = {"mesh": mesh, "in_specs": (G.spec, P()), "out_specs": P(), "check_vma": False}
        products = jax.shard_map(lambda G, X: G.gather(G @ G.deal(X)), **how)
        same(jax.jit(products)(G, X), dense @ X)
        ranks = jax.shard_map(lambda G, w: jsp.pagerank(G, tol=1e-7).scores @ w, **how)
        flawed = G.with_data(G.data.at[0, 0, 0].set(-1))  # on one device
        assert np.isnan(jax.jit(ranks)(flawed, weights))
        slope = jax.jit(jax.grad(lambda d, G=G, f=ranks: f(G.with_data(d), weights)))(G.data)
        slope = np.asarray(G.with_data(slope).unshard().data)
        for k in rng.choice(row.size, 9, replace=False):
            there = np.zeros_like(dense)
            there[row[k], col[k]] = 1e-4
            want = (loss(dense + there) - loss(dense - there)) / 2e-4
            assert abs(slope[k] - want) < 1e-5 + 1e-2 * abs(want), (k, slope[k], want)
    ordered(G)


def ordered(G):
    """`add` that does not commute, a matrix that lacks entries."""
    ends = jnp.arange(5)
    cut = jax.jit(lambda i: jsp.from_edges(i, i, shape=(9, 9), nse=3))(ends)
    x, maps = (jnp.ones(G.n), jnp.ones(G.n)), G.with_data((G.data, G.data))

    def ring(join, check):
        zero = (1, 0) if join is chained else (0, 0)
        return jsp.semiring(jsp.monoid(join, zero, check=check), lambda a, x: a)

    def chained(p, q):
        return p[0] * q[0], p[0] * q[1] + p[1]

    def added(p, q):
        return p[0] + q[0], p[1] + q[1]

    def multiply(check):
        return jsp.mxv(maps, x, ring(chained, check))

    dense = np.asarray(G.unshard().todense())
    for run in (jsp.mxv, jax.jit(jsp.mxv)):
        np.testing.assert_allclose(run(maps, x, ring(added, False))[1], dense.sum(1), rtol=1e-5)
    cases = (
        (ValueError, "lacks entries", lambda: jsp.shard(cut, G.part.mesh)),
        (NotImplementedError, "does not commute", functools.partial(multiply, True)),
        (NotImplementedError, "does not commute", functools.partial(multiply, False)),
        (NotImplementedError, "does not commute", jax.jit(lambda: multiply(False))),
    )
    refused(cases)


def closed_over(mesh_of):
    """A jitted function may close over a sharded graph; nothing else lies on the mesh."""
    G = jsp.shard(
        jsp.from_edges([0, 1, 2], [1, 2, 0], [2.0, 3.0, 4.0], shape=(3, 3)), *mesh_of("four")
    )
    levels, lengths = jax.jit(lambda s: (jsp.bfs(G, s).levels, jsp.sssp(G, s).distances))(1)
    assert levels.tolist() == [2, 0, 1] and lengths.tolist() == [7, 0, 3]
    loss = jax.jit(jax.grad(lambda x: jnp.sum(jsp.mxv(G, x) ** 2)))
    assert loss(jnp.ones(3)).tolist() == [32, 8, 18]
    both = jax.jit(jax.vmap(lambda x: jsp.vxm(x, G)))(jnp.eye(3))
    assert both.tolist() == [[0, 2, 0], [0, 0, 3], [4, 0, 0]]


def given(mesh_of):
    """SciPy's matrices are sharded; sparse operands are refused as the documentation says."""
    S = scipy.sparse.random_array((37, 37), density=0.1, rng=0, dtype=np.float32)
    A, where = jsp.from_scipy(S), mesh_of("blocks")
    G = jsp.shard(S.tocsr(), *where)
    np.testing.assert_array_equal(G.unshard().todense(), S.toarray())
    v = jsp.reduce(A, axis=0)
    for call in (lambda: jsp.mxv(G, v), lambda: v @ G, lambda: G @ G, lambda: G @ A, lambda: A @ G):
        with pytest.raises(NotImplementedError, match="takes an array"):
            call()


def split(mesh_of):
    """A matrix whose arrays are split over two axes is prepared for a search."""
    S = scipy.sparse.random_array((40, 40), density=0.1, rng=0, dtype=np.float32).tocsr()
    mesh, A = mesh_of("blocks")[0], jsp.from_scipy(S)

    def put(x):
        names = (name if size % 2 == 0 else None for size, name in zip(x.shape, "rc", strict=False))
        return jax.device_put(x, NamedSharding(mesh, P(*names)))

    G = jsp.prepare(jax.tree.map(put, A), for_=("bfs", "sssp"))
    want = scipy.sparse.csgraph.dijkstra(S, indices=0)
    np.testing.assert_allclose(jsp.sssp(G, 0).distances, want, rtol=1e-5)
    hops = scipy.sparse.csgraph.dijkstra(S, indices=0, unweighted=True)
    np.testing.assert_array_equal(jsp.bfs(G, 0).levels, np.where(np.isinf(hops), -1, hops))


def narrow(mesh_of):
    """Weights of 16 bits are computed with in float32, as on one device."""
    ends = [0, 1, 2, 2], [1, 2, 0, 1]
    G = jsp.shard(jsp.from_edges(*ends, np.ones(4, np.float16), shape=(3, 3)), *mesh_of("two"))
    share = np.array([[0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]])
    want = np.linalg.solve(np.eye(3) - 0.85 * share.T, np.full(3, 0.05))
    found = jsp.pagerank(G)
    assert found.scores.dtype == np.float32 and found.converged
    np.testing.assert_allclose(found.scores, want, atol=1e-5)
    ends = np.arange(30), np.arange(1, 31)
    weights = np.full(30, 100.5, jnp.bfloat16)
    path = jsp.shard(jsp.from_edges(*ends, weights, shape=(31, 31)), *mesh_of("two"))
    found, want = jsp.sssp(path, 0), (100.5 * np.arange(31)).astype(jnp.bfloat16)
    assert found.distances.dtype == jnp.bfloat16
    np.testing.assert_array_equal(found.distances.astype(np.float32), want.astype(np.float32))
    assert found.parents.tolist() == [0, *range(30)]
