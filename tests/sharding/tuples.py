"""Checks of products over tuples on a mesh; `program.py` runs them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from sharded_calls import exact, refused, same

import jaxspv as jsp

s = jsp.semirings


def least(costs, ids):
    """Columns of (costs, ids): the least, of equal ones the lesser id."""
    order = np.lexsort((ids, costs), axis=0)[:1]
    return tuple(np.take_along_axis(v, order, 0)[0] for v in (costs, ids))


def tuples(mesh_of, A):
    """Beside NumPy, with values of one matrix in the order of its entries, both ways."""
    n, rng = A.shape[0], np.random.default_rng(0)
    row, col = (np.asarray(v)[: int(A.nnz)] for v in A.rowcol())
    dense = jnp.asarray(rng.integers(0, 5, n), jnp.float32)
    argmin, mean = s.argmin_plus(), s.expectation()
    ids = A.with_data(argmin.lift(A.data))
    logs = A.with_data(mean.lift(A.data / 4, jnp.cos(A.data)))
    start = dense, jnp.full(n, 2**31 - 1)

    @jax.jit
    def found(A, B):
        return (jsp.vxm(start, A, argmin), jsp.mxv(A, start, argmin),
                jsp.vxm((dense, dense), B, mean), jsp.mxv(B, (dense, dense), mean))  # fmt: skip

    for name in ("four", "both"):
        mesh, spec = mesh_of(name)
        G, L = (jsp.shard(M, mesh, spec) for M in (ids, logs))
        back = L.unshard()
        exact((back.places.indices, *back.data), (A.indices, *logs.data))
        by_vxm, by_mxv, *means = found(G, L)
        for got, at, other in ((by_vxm, col, row), (by_mxv, row, col)):
            costs, winners = np.full((row.size + 1, n), np.inf), np.full((row.size + 1, n), 2**31 - 1)  # fmt: skip  # noqa: E501
            costs[np.arange(row.size), at] = np.asarray(A.data)[: row.size] + dense[other]
            winners[np.arange(row.size), at] = np.arange(row.size)
            exact(got, least(costs, winners))
        for (level, value), at, other in zip(means, (col, row), (row, col), strict=True):
            weights = np.exp(np.asarray(logs.data[0], float)[: row.size] + dense[other])
            values = np.asarray(logs.data[1], float)[: row.size] + dense[other]
            total = np.bincount(at, weights, n)
            with np.errstate(divide="ignore"):
                same(level, np.log(total), rtol=1e-5, atol=1e-6)
            parts = np.bincount(at, weights * values, n) / np.maximum(total, 1e-30)
            same(value, parts, rtol=1e-5, atol=1e-6)
        lists = jnp.stack([dense, jnp.full(n, jnp.inf)], 1), *[jnp.full((n, 2), 2**31 - 1)] * 2
        exact(jsp.vxm(lists, G, s.k_best(2))[0][:, 0], by_vxm[0])

    def loss(values, M):
        return jnp.sum(jnp.sin(jsp.mxv(M.with_data(values), (dense, dense), mean)[1]))

    slopes = L.with_data(jax.jit(jax.grad(loss))(L.values, L)).unshard()
    for got, want in zip(slopes.data, jax.grad(loss)(logs.data, logs), strict=True):
        same(got[: row.size], want[: row.size], rtol=1e-4, atol=1e-6)
    twice = dataclasses.replace(L.places, unique=False)
    cases = (
        (NotImplementedError, "one device", lambda: jsp.mxm(L, np.ones((n, 2)), mean)),
        (NotImplementedError, "`mask`", lambda: jsp.mxv(G, start, argmin, mask=np.ones(n, bool))),
        (NotImplementedError, "dense", lambda: jsp.mxv(G, jsp.vector_from_dense(dense), argmin)),
        (ValueError, "vertices", lambda: jsp.mxv(G, (dense[1:], start[1]), argmin)),
        (ValueError, "must have leaves", lambda: G.with_data((dense, dense))),
        (ValueError, "once", lambda: twice.with_data((twice.data, twice.data))),
    )
    refused(cases)
