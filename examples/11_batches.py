"""Many searches in one call: sources, weights and whole graphs in a batch.

Run: python examples/11_batches.py
"""

# %%
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

# %% [markdown]
# ## Several sources
#
# `bfs` of an array of sources, and `vmap` of it, is one traversal. Thirty-two searches share a
# word: an edge that is looked at is looked at for all of them.

# %%
A = jsp.read_mtx(jsp.bundled("delaunay_n13"))
G = jsp.prepare(A, for_=("bfs", "sssp"))
sources = jnp.arange(0, G.n, G.n // 64)[:64]


@jax.jit
def together(G, sources):
    return jsp.bfs(G, sources, parents=False).levels


@jax.jit
def one_by_one(G, sources):
    return jax.lax.map(lambda s: jsp.bfs(G, s, parents=False).levels, sources)


np.testing.assert_array_equal(together(G, sources), one_by_one(G, sources))
for search in (one_by_one, together):
    start = time.perf_counter()
    for _ in range(3):
        search(G, sources).block_until_ready()
    print(f"{search.__name__}: {(time.perf_counter() - start) / 3 * 1e3:.1f} ms for 64 searches")

# %% [markdown]
# ## What 64 searches show
#
# The largest of a source's levels is its eccentricity; over all sources it bounds the diameter.

# %%
levels = together(G, sources)
far = levels.max(1)
print("eccentricities", int(far.min()), "to", int(far.max()))
upper = 2 * int(far.min())
print(f"so the diameter lies between {int(far.max())} and {upper}")
assert int(far.max()) <= upper

# %% [markdown]
# ## Several weightings of one graph
#
# A batch over the values: one pattern, many costs. Here, how robust is the shortest way across a
# grid when every road is delayed at random?

# %%
grid = jsp.generators.grid2d(None, 12).astype(jnp.float32)
delays = 1 + jax.random.exponential(jax.random.key(0), (200, grid.nse))


@jax.jit
def across(delays):
    return jax.vmap(lambda w: jsp.sssp(grid.with_data(w), 0).distances[-1])(delays)


trip = across(delays)
print(f"22 roads: {trip.mean():.1f} minutes on average, 95% below {jnp.quantile(trip, 0.95):.1f}")

# %% [markdown]
# ## Several graphs
#
# Graphs of different sizes become one batch with `jsp.pad`: one shape, one capacity, one program.
# What it adds are ghosts, which no algorithm counts.

# %%
graphs = [jsp.generators.erdos_renyi(jax.random.key(k), 30 + 3 * k, p=0.05) for k in range(8)]
n, nse = max(g.shape[0] for g in graphs), max(g.nse for g in graphs)
padded = [jsp.pad(g, n=n, nse=nse) for g in graphs]
batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *padded)
parts = jax.jit(jax.vmap(lambda g: jsp.connected_components(g).count))(batch)
print("components:", parts)
assert parts.tolist() == [int(jsp.connected_components(g).count) for g in graphs]
