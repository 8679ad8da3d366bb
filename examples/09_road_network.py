"""A road network, and a map of it drawn from nothing but distances.

The file of Minnesota's roads says which junctions are joined, not where they are. Distances from a
hundred landmarks are enough to draw the map. Run: python examples/09_road_network.py

Source: de Silva, Tenenbaum, "Sparse multidimensional scaling using landmark points", 2004.
"""

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxspv as jsp

A = jsp.read_mtx(jsp.bundled("minnesota"))
G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank"))
G

# %% [markdown]
# ## Distances from a hundred landmarks
#
# An array of sources is one traversal: 32 searches share a word at every junction, and each road
# is read a single time for all of them. The largest connected part holds nearly all junctions.

# %%
labels = jsp.connected_components(G).labels
largest = jnp.bincount(labels, length=G.n).argmax()
there = np.flatnonzero(labels == largest)
landmarks = np.random.default_rng(0).choice(there, 100, replace=False)
hops = jsp.bfs(G, jnp.asarray(landmarks), parents=False).levels
print(hops.shape, "largest number of hops:", int(hops.max()))

# %% [markdown]
# ## A map
#
# Squared distances, centred, are an inner product; its two leading eigenvectors are coordinates.
# Every other junction is placed by its distances to the landmarks.

# %%
squared = jnp.asarray(hops, jnp.float32) ** 2
between = squared[:, landmarks]
centred = between - between.mean(0) - between.mean(1, keepdims=True) + between.mean()
size, axis = jnp.linalg.eigh(-centred / 2)
lead = axis[:, -2:] / jnp.sqrt(size[-2:])
pos = -(squared - between.mean(1, keepdims=True)).T @ lead / 2

fig, ax = plt.subplots(figsize=(7, 7), layout="constrained")
farthest = jnp.where(labels == largest, hops[0].astype(jnp.float32), jnp.nan)
jsp.plot.draw(A, ax, pos=pos, values=farthest, node_size=7, cmap="plasma")
ax.set_title("coloured by the hops from one landmark")

# %% [markdown]
# ## How a search spreads
#
# On a road network a search has many small levels: the frontier is a ring that grows and dies
# out.

# %%
ax = jsp.plot.frontier(G, int(landmarks[0]))

# %% [markdown]
# ## Which roads matter
#
# The gradient of the sum of all distances from a junction, by the length of each road, counts the
# routes over it. Thick roads carry many.


# %%
def total(A):
    d = jsp.sssp(A, int(landmarks[0]), parents=False).distances
    return jnp.sum(jnp.where(jnp.isfinite(d), d, 0))


routes = jsp.grad(total)(A).data
fig, ax = plt.subplots(figsize=(7, 7), layout="constrained")
jsp.plot.draw(A, ax, pos=pos, edge_values=routes, node_size=0)
ax.set_title(f"the busiest road carries {int(routes.max())} of {len(there)} routes")

# %% [markdown]
# ## Near a junction
#
# Personalised PageRank from four junctions together: who is near, counting all ways and not only
# the shortest.


# %%
def near(v):
    p = jnp.zeros(A.shape[0]).at[v].set(1.0)
    return jsp.pagerank(G, personalization=p).scores


scores = jax.vmap(near)(jnp.asarray(landmarks[:4]))
print(jax.lax.top_k(scores, 3)[1])
assert (scores.argmax(1) == landmarks[:4]).all()
