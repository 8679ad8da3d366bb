"""Semirings: one product, many meanings; your own from any JAX functions.

Run: python examples/02_semirings.py
"""

# %%
import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

# %% [markdown]
# Four cities, six flights, each with a price and a chance to leave on time. Two matrices share
# one pattern.

# %%
cities = ["AMS", "BER", "CDG", "DUB"]
out, into = [0, 0, 1, 1, 2], [1, 2, 2, 3, 3]
price = jsp.from_edges(out, into, [80.0, 60.0, 20.0, 90.0, 150.0], shape=(4, 4))
chance = price.with_data(jnp.asarray([0.9, 0.5, 0.8, 0.95, 0.99]))
places = [(0, 0), (1, 1), (1, -1), (2, 0)]
ax = jsp.plot.draw(price, pos=places, labels=cities, edge_values=price.data, node_size=900)

# %% [markdown]
# ## The cheapest way: (min, +)
#
# `vxm(x, A)` sends what stands at each city along its flights: `+` adds the price, `min` keeps
# the cheapest that arrives. The cheapest way with at most k flights is k products.

# %%
cost = jnp.asarray([0.0, jnp.inf, jnp.inf, jnp.inf])
for _ in range(2):
    cost = jnp.minimum(cost, jsp.vxm(cost, price, jsp.semirings.min_plus))
print("cheapest, two flights:", dict(zip(cities, cost.tolist(), strict=True)))

# %% [markdown]
# ## The most reliable way: (max, x)
#
# Chances multiply along a way, and the best is kept.

# %%
sure = jnp.asarray([1.0, 0.0, 0.0, 0.0])
for _ in range(2):
    sure = jnp.maximum(sure, jsp.vxm(sure, chance, jsp.semirings.max_times))
print("most reliable:", [round(p, 3) for p in sure.tolist()])

# %% [markdown]
# ## All ways together: (log-sum-exp, +)
#
# With `log_plus` a product gives the log of a sum over *all* ways, each weighted by its price.
# The gradient by the flights is then the share of travellers on each flight, if cheaper ways are
# chosen more often.

# %%
logits = price.with_data(-price.data / 50)


def log_total(data):
    edges = logits.with_data(data)
    y = jnp.asarray([0.0, -jnp.inf, -jnp.inf, -jnp.inf])
    ways = []
    for _ in range(3):
        y = jsp.vxm(y, edges, jsp.semirings.log_plus)
        ways.append(y[3])
    return jnp.logaddexp(ways[1], ways[2])  # ways of two and of three flights; none is direct


shares = jax.grad(log_total)(logits.data)
print("share of each flight among all ways to DUB:", np.round(shares, 3))

# %% [markdown]
# ## Your own
#
# Two functions make a semiring. Here a noisy-or of independent routes: at least one must work.
# The decay is a parameter, a leaf of the pytree: it can be batched and differentiated.

# %%
noisy_or = jsp.monoid(lambda p, q: p + q - p * q, 0, name="noisy_or")
damped = jsp.BinaryOp(lambda p, edge, decay: decay * p * edge, "damped", (0.95,))
semiring = jsp.semiring(noisy_or, damped)
arrive = jsp.vxm(jnp.asarray([1.0, 0.0, 0.0, 0.0]), chance, semiring)
print("noisy-or of one step:", [round(p, 3) for p in arrive.tolist()])
