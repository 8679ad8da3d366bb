"""Loops that the tests of fixpoint share: a random graph, starts, PageRank."""

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

N = 40


def weighted(n=N, m=140, seed=0, low=1, high=9):
    """A SciPy matrix with integer weights, and the same as float32 in a CSR."""
    rng = np.random.default_rng(seed)
    A = sp.csr_array((n, n), dtype=np.float32)
    S = sp.coo_array((rng.integers(low, high, m), rng.integers(0, n, (2, m))), shape=(n, n))
    S = sp.csr_array(S.tocsr().astype(np.float32) + A)
    return S, jsp.from_scipy(S)


def start(source, n=N, dtype=np.float32, at=0):
    top = np.inf if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    x0 = np.full(n, top, dtype)
    x0[source] = at
    return jnp.asarray(x0)


def rank(A, damping=0.85, tol=1e-7, scale=1.0, until=None):
    """PageRank through fixpoint; `damping` is captured, the strengths are operands."""
    row, _ = A.rowcol()
    n = A.shape[0]
    strength = jnp.zeros(n).at[row].add(A.data, mode="drop")
    share = jnp.where(strength > 0, 1 / jnp.where(strength > 0, strength, 1), 0)
    P = A.with_data(A.data * share.at[row].get(mode="fill", fill_value=0))
    return jsp.fixpoint(
        P,
        jnp.full(n, 1 / n),
        update=lambda x, y, i, s, sums: damping * (y + sums["lost"] / n) + (1 - damping) / n,
        operands=(strength,),
        sums={"lost": lambda x, s: jnp.where(s > 0, 0, x)},
        until=until or jsp.until.residual(tol) | jsp.until.max_iterations(200),
    )
