"""BFS, shortest paths and PageRank in a few lines each, by `fixpoint`.

Run: python examples/fixpoint.py
"""

import jax.numpy as jnp

import jaxspv as jsp


def bfs_levels(G, source):
    """Levels by edges of length 1; G has the entries 1."""
    x0 = jnp.full(G.shape[0], jnp.inf).at[source].set(0)
    levels = jsp.fixpoint(G, x0, jsp.semirings.min_plus, monotone=True).x
    return jnp.where(jnp.isfinite(levels), levels, -1).astype(jnp.int32)


def sssp_distances(G, source):
    """Lengths of the shortest paths."""
    x0 = jnp.full(G.shape[0], jnp.inf).at[source].set(0)
    return jsp.fixpoint(G, x0, jsp.semirings.min_plus, monotone=True).x


def pagerank(P, dangling, damping=0.85, tol=1e-6):
    """Scores; P has rows of sum 1, or 0 where `dangling` is 1."""
    return jsp.fixpoint(P, **pagerank_loop(P, dangling, damping, tol)).x


def pagerank_loop(P, dangling, damping=0.85, tol=1e-6):
    """What `fixpoint` is called with for it."""
    n = P.shape[0]
    return {
        "x0": jnp.full(n, 1 / n),
        "update": lambda x, y, i, d, sums: damping * (y + sums["lost"] / n) + (1 - damping) / n,
        "operands": (dangling,),
        "sums": {"lost": lambda x, d: d * x},
        "until": jsp.until.residual(tol) | jsp.until.max_iterations(100),
    }


def transition(A):
    """A with its rows scaled to sum 1, and 1 where a row is empty."""
    row, _ = A.rowcol()
    degree = jnp.diff(A.indptr)
    return A.with_data(1 / degree[jnp.minimum(row, A.shape[0] - 1)]), jnp.float32(degree == 0)


def main():
    """On the karate club: who is how far from vertex 0, and who matters most."""
    A = jsp.read_mtx(jsp.bundled("karate"))
    A = A.with_data(jnp.ones(A.nse)).asformat("csr")
    G = jsp.prepare(A, for_="fixpoint")
    levels = bfs_levels(G, 0)
    print("levels from vertex 0:", levels.tolist())
    print("the farthest vertex is", float(sssp_distances(G, 0).max()), "away")
    P, dangling = transition(A)
    scores = pagerank(jsp.prepare(P, for_="fixpoint"), dangling)
    print("the most important vertex is", int(scores.argmax()))
    return levels, scores


if __name__ == "__main__":
    main()
