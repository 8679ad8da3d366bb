"""Yang's Figure 2: three products with a sparse vector, on graphs that double.

Breadth-first search as a loop of products, with no sort, a radix sort or a merge sort inside, and
with a dense vector for comparison; time against the edges traversed, on a series of R-MAT graphs.
Run: python examples/19_yang_figure_2.py

Source: Yang, Wang, Owens, "Fast sparse matrix and sparse vector multiplication algorithm on the
GPU", IPDPSW 2015, Figure 2.
"""

# %%
import functools
import json
import pathlib
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxspv as jsp

# %% [markdown]
# ## The question
#
# A step of a search multiplies the frontier, a sparse vector, with the matrix: gather the rows that
# the frontier selects, and join what arrives at the same vertex. Joining is the costly part. Three
# ways to do it, which the paper compares:
#
# - **no sort**: write every arrival to its place in a dense array; writes are scattered;
# - **radix sort**: sort the arrivals first, then write in order;
# - **merge sort**: the gathered rows are sorted already, so merge them.
#
# The fourth, **SpMV**, has no sparse vector at all: it looks at every edge in every step.

# %%
METHODS = {"scatter": "no sort", "sort": "radix sort", "merge": "merge sort", "dense": "SpMV"}


@functools.partial(jax.jit, static_argnames="method")
def search(A, source, method):
    """Levels from `source`, -1 where unreached: Algorithm 1 of the paper. A is symmetric."""
    n = A.shape[0]

    def step(state):
        depth, levels, frontier = state
        if method == "dense":
            found = jsp.mxv(A, frontier, jsp.semirings.or_and)
        else:
            x = jsp.vector_from_dense(frontier, nse=n)  # stream compaction
            found = jsp.vxm(x, A, jsp.semirings.or_and, method=method).todense()
        new = found & (levels < 0)
        return depth + 1, jnp.where(new, depth + 1, levels), new

    frontier = jnp.arange(n) == source
    state = (jnp.int32(0), jnp.where(frontier, 0, -1), frontier)
    return jax.lax.while_loop(lambda s: s[2].any(), step, state)[1]


# %% [markdown]
# ## A series of graphs
#
# The paper takes Kronecker graphs of 2^16 to 2^21 vertices, some 44 edges a vertex, and ten
# starting vertices each. Here it is the same kind of graph with 2^8 to 2^10 vertices, which a
# laptop searches while you wait. Every search is checked against `jsp.bfs` before its time counts.

# %%
points = {method: [] for method in METHODS}
for scale in range(8, 11):
    A = jsp.generators.rmat(jax.random.key(scale), scale, 44).astype(bool)
    degree = np.diff(np.asarray(A.indptr))
    sources = np.random.default_rng(0).choice(np.flatnonzero(degree), 10, replace=False)
    for method in METHODS:
        for k, source in enumerate([sources[0], *sources]):  # the first call compiles
            start = time.perf_counter()
            levels = search(A, jnp.int32(source), method).block_until_ready()
            seconds = time.perf_counter() - start
            np.testing.assert_array_equal(levels, jsp.bfs(A, int(source)).levels)
            if k:
                edges = degree[np.asarray(levels) >= 0].sum() // 2
                points[method].append((int(edges), 1e3 * seconds))
    median = [f"{METHODS[m]} {np.median([t for _, t in p[-10:]]):.2f}" for m, p in points.items()]
    print(f"2^{scale} vertices, {int(A.count) // 2:,} edges, ms:", ", ".join(median))

# %% [markdown]
# ## The figure
#
# Left: what this machine just measured. Right: the series of the paper on one H200 GPU, from the
# stored results of `python -m benchmarks yang2015`, and crosses for what the paper's Table IV says
# of a K40c, a GPU of 2013.

# %%
PAPER = {  # their Table IV: milliseconds, and millions of edges a second, 2^16 to 2^21 vertices
    "no sort": ((1.37, 1.71, 2.85, 6.79, 21.08, 68.09), (1402, 1924, 2765, 2372, 1469, 1088)),
    "radix sort": ((4.74, 5.81, 9.79, 16.85, 29.25, 64.23), (405, 567, 805, 956, 1059, 1153)),
    "merge sort": ((3.81, 5.35, 11.37, 22.31, 43.13, 105.92), (504, 615, 692, 722, 718, 699)),
    "SpMV": ((2.21, 4.02, 7.70, 19.94, 75.97, 259.86), (868, 820, 1023, 808, 408, 285)),
}
folder = pathlib.Path("benchmarks" if pathlib.Path("benchmarks").is_dir() else "../benchmarks")
stored = json.loads((folder / "results/nvidia-h200/yang2015.json").read_text())["records"]
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for color, (method, label) in zip(("C0", "C1", "C2", "C3"), METHODS.items(), strict=True):
    left.plot(*zip(*points[method], strict=True), ".", color=color, label=label)
    series = [r["points"] for r in stored if r["method"] == method and "rmat" in r["graph"]]
    right.plot(*np.concatenate(series).T, ".", color=color, label=f"{label}, H200")
    ms, mteps = (np.array(column) for column in PAPER[label])
    right.plot(1e3 * ms * mteps, ms, "x", color=color, label=f"{label}, the paper")
left.set(title="this machine's CPU", ylabel="ms a search")
right.set(title="GPUs")
for ax in (left, right):
    ax.set(xscale="log", yscale="log", xlabel="undirected edges traversed")
    ax.legend(fontsize=7, frameon=False)

# %% [markdown]
# ## What holds, and what does not
#
# - Among the three, no sort is fastest on the H200 too, until the radix sort meets it at 2^21.
# - In the paper the curve without a sort bends upwards from 2^19 on. On the H200 none bends: edges
#   a second still rise at the last graph.
# - The merge sort here is a loop of merges in XLA and no kernel of its own. It is far slower than
#   their hand-written one, and it is no choice for speed.
# - SpMV lost to SpMSpV in the paper, the more the larger the graph. Here it wins at every size: it
#   looks at all edges in each of five levels, and is still done sooner than what compacts, gathers
#   and joins.
#
# So do not search by products where speed counts. `jsp.bfs` pushes from small frontiers, pulls from
# large ones and stops looking where it has found a parent, all in one native loop or one launch:

# %%
A = jsp.generators.rmat(jax.random.key(13), 13, 44).astype(bool)
G = jsp.prepare(A, for_="bfs")
programs = {
    "no sort": lambda s: search(A, s, "scatter"),
    "SpMV": lambda s: search(A, s, "dense"),
    "jsp.bfs": functools.partial(jax.jit(lambda G, s: jsp.bfs(G, s, parents=False).levels), G),
}
times = {name: [] for name in programs}
for source in (0, *range(10)):
    for name, program in programs.items():  # alternately: a busy machine is busy for all
        start = time.perf_counter()
        program(jnp.int32(source)).block_until_ready()
        times[name].append(1e3 * (time.perf_counter() - start))
print(f"{int(A.count) // 2:,} edges:", {k: f"{np.median(t[1:]):.2f} ms" for k, t in times.items()})
