"""Learn the travel time of each road from observed travel times of whole trips.

The gradient of a shortest distance by the lengths of the edges is 1 along the route, so trips that
were observed name the roads that they used. Run: python examples/03_learn_road_costs.py
"""

# %%
import functools

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import optax

import jaxspv as jsp

STEPS = 200

# %% [markdown]
# A town of 144 crossings whose roads take one to five minutes. The minutes are unknown; what was
# seen is how long trips from sixteen crossings to everywhere took.

# %%
G = jsp.generators.grid2d(jax.random.key(0), 12, drop=0.1)  # a town of 144 crossings
n = G.shape[0]
truth = jax.random.uniform(jax.random.key(1), (G.nse,), minval=1.0, maxval=5.0)
origins = jax.random.choice(jax.random.key(2), n, (16,), replace=False)
observed = jsp.sssp(G.with_data(truth), origins, parents=False).distances

# %% [markdown]
# The lengths are trained through `softplus`, which keeps them positive. `G.with_data(lengths)`
# puts new values on the same pattern, and the gradient of a distance by the lengths is 1 along
# its route.


# %%
def loss(theta):
    lengths = jax.nn.softplus(theta)
    trips = jsp.sssp(G.with_data(lengths), origins, parents=False).distances
    reached = jnp.isfinite(observed)
    error = jnp.where(reached, trips, 0) - jnp.where(reached, observed, 0)
    return jnp.sum(error**2) / jnp.sum(reached)


# %%
rule = optax.adam(0.05)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(theta, state):
    value, slope = jax.value_and_grad(loss)(theta)
    move, state = rule.update(slope, state)
    return optax.apply_updates(theta, move), state, value


# %%
theta = jnp.full(G.nse, 2.0)
state = rule.init(theta)
values = []
for _ in range(STEPS):
    theta, state, value = step(theta, state)
    values.append(float(value))
first, last = values[0], values[-1]
print(f"mean squared error of a trip: {first:.3f} before, {last:.4f} after {STEPS} steps")
assert last < first / 10, "learning failed"

# %% [markdown]
# The error falls by orders of magnitude. Roads that no shortest trip uses stay unknown: their
# gradient is zero, and no observation says anything about them.

# %%
ax = plt.subplots(layout="constrained")[1]
ax.semilogy(values)
ax.set(xlabel="step", ylabel="mean squared error of a trip")

# %%
learnt = jax.nn.softplus(theta)
routes = jax.grad(lambda w: jsp.sssp(G.with_data(w), origins).distances.sum())(truth)
used = routes > 0
error = jnp.abs(learnt - truth)
print(
    f"{int(used.sum())} of {G.nse} roads are used;",
    f"median error of these {jnp.median(error[used]):.3f} minutes",
)
crossings = [(k % 12, -(k // 12)) for k in range(n)]
distance = jsp.sssp(G.with_data(learnt), 0).distances
ax = jsp.plot.draw(G, pos=crossings, values=distance, edge_values=learnt, node_size=30)
