"""Quickstart: a graph as a pytree, searched, ranked, batched and differentiated.

Run: python examples/01_quickstart.py
"""

import jax
import jax.numpy as jnp

import jaxspv as jsp

# A road network: A[i, j] is the edge i -> j.
A = jsp.read_mtx(jsp.bundled("minnesota"))
G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank"))
print(G)
print(jsp.explain("bfs", G))


@jax.jit
def eccentricity(G, sources):
    """The largest number of hops from each source; G is an argument, not a constant."""
    return jax.vmap(lambda s: jsp.bfs(G, s).levels.max())(sources)


print("hops to the farthest junction:", eccentricity(G, jnp.arange(8)))

# Stop early: two junctions meet, or ten levels have passed.
near = jsp.bfs(G, 0, until=jsp.reached(100) | jsp.max_iterations(10))
print("found within ten levels:", int((near.levels >= 0).sum()), "junctions")

ranks = jsp.pagerank(G)
print("most visited junctions:", jax.lax.top_k(ranks.scores, 3)[1], "after", int(ranks.iterations))

# One step of a traversal is a product of a sparse vector with the matrix, over any semiring.
frontier = jsp.vector_from_entries([0], [0.0], A.shape[0])
step = jsp.vxm(frontier, A, jsp.semirings.min_plus)
print("one step from junction 0:", step.indices[: int(step.count)], step.data[: int(step.count)])


def total_length(A):
    """The sum of all shortest distances from junction 0."""
    d = jsp.sssp(A, 0).distances
    return jnp.sum(jnp.where(jnp.isfinite(d), d, 0))


dA = jsp.grad(total_length)(A)
busiest = int(jnp.argmax(dA.data))
row, col = A.rowcol()
print(f"the road {int(row[busiest])} -> {int(col[busiest])} is on {int(dA.data[busiest])} routes")
