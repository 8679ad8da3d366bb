"""Quickstart: a graph as a pytree, searched, ranked, batched and differentiated.

Run: python examples/01_quickstart.py
"""

# %%
import jax
import jax.numpy as jnp

import jaxspv as jsp

# %% [markdown]
# ## A graph
#
# A matrix is a pytree, and `A[i, j]` is the edge i -> j. Here it is the road network of
# Minnesota:
# 2,642 junctions, every road in both directions.

# %%
A = jsp.read_mtx(jsp.bundled("minnesota"))
A

# %% [markdown]
# `prepare` computes once what the fast paths need, and `explain` says what will run for a call
# and why nothing faster does. On this machine that is the CPU's form; the same program on a GPU
# takes one kernel launch.

# %%
G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank"))
print(G)
print(jsp.explain("bfs", G))

# %% [markdown]
# ## Searching
#
# How a search from junction 0 spreads, level by level:

# %%
ax = jsp.plot.frontier(G, 0)

# %% [markdown]
# Inside `jit` and `vmap` it is a function like any other. Give graphs as arguments: what a jitted
# function closes over becomes a constant of its program.


# %%
@jax.jit
def eccentricity(G, sources):
    """The largest number of hops from each source."""
    return jax.vmap(lambda s: jsp.bfs(G, s).levels.max())(sources)


print("hops to the farthest junction:", eccentricity(G, jnp.arange(8)))

# %% [markdown]
# A search can stop early, when it has met a junction or after some levels:

# %%
near = jsp.bfs(G, 0, until=jsp.until.reached(100) | jsp.until.max_iterations(10))
print("found within ten levels:", int((near.levels >= 0).sum()), "junctions")

# %% [markdown]
# ## Ranking, and one step by hand
#
# PageRank is one call. And one step of any traversal is a product of a sparse vector with the
# matrix, over a semiring: here (min, +), the cost of one more road.

# %%
ranks = jsp.pagerank(G)
print("most visited junctions:", jax.lax.top_k(ranks.scores, 3)[1], "after", int(ranks.iterations))
frontier = jsp.vector_from_entries([0], [0.0], A.shape[0])
step = jsp.vxm(frontier, A, jsp.semirings.min_plus)
print("one step from junction 0:", step.indices[: int(step.count)], step.data[: int(step.count)])

# %% [markdown]
# ## Differentiating
#
# How does the sum of all distances from junction 0 change with the length of each road? Each road
# counts as often as a shortest route uses it, so the gradient finds the busiest road.


# %%
def total_length(A):
    """The sum of all shortest distances from junction 0."""
    d = jsp.sssp(A, 0).distances
    return jnp.sum(jnp.where(jnp.isfinite(d), d, 0))


dA = jsp.grad(total_length)(A)
busiest = int(jnp.argmax(dA.data))
row, col = A.rowcol()
print(f"the road {int(row[busiest])} -> {int(col[busiest])} is on {int(dA.data[busiest])} routes")
