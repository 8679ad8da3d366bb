"""Your own algorithm by `fixpoint`: a product and an update, repeated until nothing changes.

Run: python examples/12_your_own_algorithm.py
"""

# %%
import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

# %% [markdown]
# `jsp.fixpoint(A, x0, semiring, update=, until=)` repeats
#
# - `y = x (add.mul) A`: what arrives at each vertex,
# - `x = update(x, y, i, *operands, sums)`: element by element.
#
# It compiles to one loop on the device, it batches, and it has gradients. Four algorithms in a
# few lines each.
#
# ## Who hears the rumour, and when
#
# Each edge takes a time; a vertex hears at the earliest arrival. With `monotone=True` only
# vertices that changed are looked at: that is what a shortest-path algorithm does.

# %%
A = jsp.read_mtx(jsp.bundled("jazz")).astype(jnp.float32)
n = A.shape[0]
times = jax.random.uniform(jax.random.key(0), (A.nse,), minval=0.5, maxval=2.0)
G = jsp.prepare(A.with_data(times), for_="fixpoint")
heard = jsp.fixpoint(
    G, jnp.full(n, jnp.inf).at[0].set(0.0), jsp.semirings.min_plus, monotone=True
).x
np.testing.assert_allclose(heard, jsp.sssp(A.with_data(times), 0).distances, rtol=1e-6)
print(f"the last of {n} musicians hears after {float(heard.max()):.2f} hours")
ax = jsp.plot.draw(A, values=heard, node_size=25, edge_values=jnp.zeros(A.nse))

# %% [markdown]
# ## Heat, with some places held
#
# Each vertex takes the mean of its neighbours, except two whose temperature is held. `operands`
# are further vectors that the update sees. `jsp.until.residual` stops when a step changes little.

# %%
row, _ = A.rowcol()
P = A.with_data(1 / jnp.diff(A.indptr)[row]).T.asformat("csr")  # y[j] = mean over its neighbours
held = jnp.zeros(n, bool).at[jnp.array([0, n - 1])].set(True)
start = jnp.zeros(n).at[0].set(1.0)


def warm(old, y, i, held, sums):
    return jnp.where(held, old, y)


heat = jsp.fixpoint(
    P,
    start,
    jsp.semirings.plus_times,
    update=warm,
    operands=(held,),
    until=jsp.until.residual(1e-3) | jsp.until.max_iterations(3000),
)
print(f"{int(heat.iterations)} steps; the mean temperature is {float(heat.x.mean()):.3f}")
assert 0 < heat.x.min() + 1e-6 and heat.x[0] == 1 and heat.x[n - 1] == 0

# %% [markdown]
# ## A sum over all vertices in every step
#
# `sums=` names scalars that are added up before each step: PageRank's dangling mass, or here the
# norm that eigenvector centrality divides by. A shift (the old vector added) makes it converge.


# %%
def normalised(old, y, i, sums):
    return (y + old) / (jnp.sqrt(sums["square"]) * shift)


shift = 1.0
ones = A.with_data(jnp.ones(A.nse))
square = {"square": lambda x: x * x}
central = jsp.fixpoint(
    ones,
    jnp.full(n, 1 / n),
    jsp.semirings.plus_times,
    update=normalised,
    sums=square,
    until=jsp.until.max_iterations(60),
).x
want = np.abs(np.linalg.eigh(ones.todense())[1][:, -1])
np.testing.assert_allclose(central / jnp.linalg.norm(central), want, atol=2e-3)
print("most central:", jax.lax.top_k(central, 3)[1])

# %% [markdown]
# ## A gradient through it
#
# How does the arrival of the rumour at one musician depend on the time each edge takes? The
# winners are known, so the derivative follows them back; nothing of the iterations is stored.


# %%
def arrival(times):
    x0 = jnp.full(n, jnp.inf).at[0].set(0.0)
    return jsp.fixpoint(A.with_data(times), x0, jsp.semirings.min_plus, monotone=True).x[150]


slope = jax.grad(arrival)(times)
print("edges that brought it to musician 150:", int((slope > 0).sum()))
assert jnp.isclose(jnp.vdot(slope, times), arrival(times), rtol=1e-5)
