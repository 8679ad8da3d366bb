"""Tiles and bitmasks: a matrix without numbers, searched by words of bits.

Run: python examples/14_tiles_and_bitmasks.py

Source: Ji et al., "TileSpMSpV: a tiled algorithm for sparse matrix-sparse vector multiplication on
GPUs", ICPP 2022.
"""

# %%
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxspv as jsp

# %% [markdown]
# ## Where the entries are
#
# A mesh as engineers have them, six unknowns at each point of a grid, numbered so that neighbours
# have near numbers; and a random graph with a few hubs. Density by cell:

# %%
block = jsp.from_dense(jnp.ones((6, 6)))  # six unknowns a point, each joined with each
mesh = jsp.kron(jsp.generators.grid2d(None, 26), block)
rmat = jsp.generators.rmat(jax.random.key(0), 12, 4)
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, A, name in zip(axes, (mesh, rmat), ("mesh", "R-MAT"), strict=True):
    jsp.plot.spy(A, ax, bins=128)
    ax.set_title(f"{name}: {ax.get_title()}")

# %% [markdown]
# ## How full the tiles are
#
# A tile of 64 by 64 costs 64 words whatever it holds. In the mesh few tiles exist and hold many
# entries; in the R-MAT graph most hold one or two.

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, A in zip(axes, (mesh, rmat), strict=True):
    jsp.plot.tiles(A, ax, nt=64)
for name, A in (("mesh", mesh), ("R-MAT", rmat)):
    print(name, "->", jsp.choose_format(A).format)

# %% [markdown]
# ## A search by words
#
# `BitTiled` keeps which entries are stored and no values. One `and` of two words tests 32 or 64
# neighbours. The levels are the same.

# %%
bits = mesh.asformat("bittiled")
print(bits)
levels = jsp.bfs(bits, 0).levels
np.testing.assert_array_equal(levels, jsp.bfs(mesh, 0, format="csr").levels)
csr_bytes = sum(leaf.nbytes for leaf in (mesh.indptr, mesh.indices))
bit_bytes = sum(leaf.nbytes for leaf in jax.tree.leaves(bits))
print(f"{csr_bytes:,} bytes of indices as CSR, {bit_bytes:,} as bits")

# %% [markdown]
# ## Three ways through a level
#
# Push from the frontier's vertices, push over all tiles with unvisited vertices, or pull from the
# unvisited vertices. The rule of the paper chooses by how many vertices are where; each way can
# be forbidden, and the answer stays. These are ways of the GPU's kernel: elsewhere the words become
# rows, which are searched.

# %%
for ways in (("push_csc",), ("push_csc", "push_csr"), ("push_csc", "push_csr", "pull_csc")):
    rule = jsp.TileRule(kernels=ways)
    np.testing.assert_array_equal(jsp.bfs(bits, 0, rule=rule).levels, levels)
    print("the same levels by", ", ".join(ways))

# %% [markdown]
# ## Products
#
# `Tiled` keeps values too, in tiles whose local indices share a word. A sparse vector in tiles
# meets only the tiles that it shares entries with.

# %%
tiled = rmat.astype(jnp.float32).asformat("tiled")
x = jsp.vector_from_entries([5, 900, 4000], [1.0, 2.0, 3.0], rmat.shape[0])
y = jsp.mxv(tiled, x, method="tile")
want = rmat.astype(jnp.float32) @ x.todense()
np.testing.assert_allclose(y.todense(), want, rtol=1e-6)
print(tiled, "times a vector of", int(x.count), "entries has", int(y.count))

# %% [markdown]
# ## When a sparse vector pays
#
# The paper's Figure 6 asks how sparse a vector must be for a product that skips what it does not
# meet. Here on this machine's CPU, with vectors of the paper's densities; the dense product looks
# at every entry whatever the vector holds.

# %%
large = jsp.kron(jsp.generators.grid2d(None, 80), block)
n, densities = large.shape[0], (0.1, 0.01, 0.001, 0.0001)
operands = {"tiles": large.asformat("tiled"), "columns": large.asformat("csc")}
programs = {
    "tiles": jax.jit(lambda A, x: jsp.mxv(A, x, method="tile")),
    "columns": jax.jit(lambda A, x: jsp.mxv(A, x, method="scatter")),
    "dense vector": jax.jit(lambda A, x: A @ x),
}
ms = {name: [] for name in programs}
for density in densities:
    size = max(1, round(density * n))
    places = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    x = jsp.vector_from_entries(places, np.ones(size), n, nse=round(0.1 * n))
    want = large @ x.todense()
    for name, product in programs.items():
        call = operands.get(name, large), x if name in operands else x.todense()
        found = product(*call)
        found = found.todense() if name in operands else found
        np.testing.assert_allclose(found, want, rtol=1e-5)
        runs = []
        for _ in range(5):
            start = time.perf_counter()
            jax.block_until_ready(product(*call))
            runs.append(1e3 * (time.perf_counter() - start))
        ms[name].append(np.median(runs))
fig, ax = plt.subplots(layout="constrained")
for name, line in ms.items():
    ax.plot(densities, line, "o-", label=name)
ax.set(xscale="log", yscale="log", xlabel="density of the vector", ylabel="ms")
ax.legend(frameon=False)

# %% [markdown]
# Columns pay while the vector has a percent of its entries or fewer; beyond, the plain product is
# done sooner. Tiles gain nothing here: in XLA their product takes the same steps whatever the
# vector holds, and only a kernel of its own skips. On the GPUs measured so far columns were faster
# than tiles as well, at every density (`python -m benchmarks tiles`); bitmask tiles, which need no
# values, are what wins, in searches over meshes.
