"""Community and centrality on a social graph: who is in the middle, and who belongs together.

198 jazz musicians, joined where they played in one band (Gleiser, Danon, "Community structure in
jazz", 2003). Run: python examples/13_social_graph.py
"""

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxspv as jsp

A = jsp.read_mtx(jsp.bundled("jazz"))
G = jsp.prepare(A, for_=("bfs", "pagerank"))
n = G.n
G

# %% [markdown]
# ## How many partners
#
# A few musicians played with nearly all others; the degrees spread over two orders of magnitude.

# %%
ax = jsp.plot.degree_distribution(A)

# %% [markdown]
# ## Three answers to "who matters"
#
# PageRank: who is met on a random walk. Betweenness: who lies on shortest paths between others.
# Closeness: who has a short way to all. They agree on some and differ on others.

# %%
measures = {
    "pagerank": jsp.pagerank(G).scores,
    "betweenness": jsp.betweenness_centrality(A).scores,
    "closeness": jsp.closeness_centrality(A).scores,
}
for name, scores in measures.items():
    print(f"{name:<12}", "highest:", jax.lax.top_k(scores, 5)[1].tolist())
together = np.corrcoef(np.stack([np.asarray(s) for s in measures.values()]))
print("correlations:", together.round(2).tolist())

# %% [markdown]
# The same picture, coloured by each:

# %%
from jaxspv.plot.graphs import layout  # noqa: E402

row, col = (np.asarray(index) for index in A.rowcol())
pos = layout(row, col, n)
fig, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
thin = jnp.zeros(A.nse)
for ax, (name, scores) in zip(axes, measures.items(), strict=True):
    jsp.plot.draw(A, ax, pos=pos, values=scores, edge_values=thin, node_size=25)
    ax.set_title(name)

# %% [markdown]
# ## Who belongs together
#
# Louvain's method moves one musician after another to the group of neighbours that raises the
# modularity most: the share of edges inside of groups, less what chance would put there. Then the
# groups become vertices, and it begins again. Label propagation is simpler, every musician takes
# the most frequent label among his partners; here it finds groups that are as good.

# %%
groups = jsp.louvain(A)
spread = jsp.label_propagation(A).labels
print(f"{int(groups.count)} communities, modularity {float(groups.modularity):.3f}")
print(f"by labels that spread, modularity {float(jsp.modularity(A, spread)):.3f}")
number = np.unique(groups.labels, return_inverse=True)[1]
fig, ax = plt.subplots(figsize=(6, 6), layout="constrained")
jsp.plot.draw(A, ax, pos=pos, values=number, edge_values=thin, node_size=40, cmap="Set2")
inside = (number[row] == number[col]).mean()
ax.set_title(f"{inside:.0%} of the edges lie inside of a community")

# %% [markdown]
# The method knows only who played with whom. Gleiser and Danon saw in these groups
# the bands of Chicago and of New York, and two parts by the colour of skin: segregation, in the
# edges.

# %% [markdown]
# ## Cores
#
# The k-core is what is left when all with fewer than k partners are removed, again and again. The
# core number of a musician is the largest k whose core has him.

# %%
cores = jsp.core_number(A).cores
k = int(cores.max())
print(f"the innermost core: {int((cores == k).sum())} musicians with at least {k} partners each")
inner = A.to_scipy().tocsr()[np.flatnonzero(cores == k)][:, np.flatnonzero(cores == k)]
assert inner.astype(bool).sum(1).min() >= k

# %% [markdown]
# ## Do my partners play together?
#
# The clustering coefficient: the share of pairs of partners that are partners too. It falls with
# the number of partners.

# %%
share = jsp.clustering(A)
degree = jnp.diff(A.indptr)
fig, ax = plt.subplots(layout="constrained")
ax.scatter(degree, share, s=12)
ax.set(xscale="log", xlabel="partners", ylabel="clustering coefficient")
print(f"average {float(share.mean()):.3f}; triangles {int(jsp.triangle_count(A).count):,}")
