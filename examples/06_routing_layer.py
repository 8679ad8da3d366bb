"""A routing layer inside a network: learn what makes a road slow from the routes that were taken.

A small network turns features of each road into its cost; the layer `soft_sssp` turns costs into
the soft distance, whose gradient by the costs is how often a traveller takes each road. The loss
compares that with observed routes, so training differentiates a gradient.
Run: python examples/06_routing_layer.py
"""

# %%
import functools

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import optax

import jaxspv as jsp

SIDE, MAPS, FEATURES, TEMPERATURE = 6, 12, 3, 0.15

# %% [markdown]
# Twelve maps of one small town. Three features of each road make its true cost; the second does
# not matter, and the network does not know it.

# %%
grid = jsp.generators.grid2d(None, SIDE).astype(jnp.float32)
start, goal = 0, SIDE * SIDE - 1
features = jax.random.uniform(jax.random.key(0), (MAPS, grid.nse, FEATURES))
truth = 0.7 + features @ jnp.asarray([2.0, 0.0, 1.0])  # the second feature does not matter

# %% [markdown]
# ## Two routes
#
# A route is a gradient: that of the distance by the costs. The hard one is 1 on the roads of the
# shortest route; the soft one is how often a traveller takes each road who prefers short routes,
# but not strictly. Only the soft one can be differentiated again.


# %%
def hard_route(costs):
    return jax.grad(lambda c: jsp.sssp(grid.with_data(c), start).distances[goal])(costs)


def soft_route(costs):
    def distance(costs):
        return jsp.soft_sssp(grid.with_data(costs), start, TEMPERATURE).distances[goal]

    return jax.grad(distance)(costs)


taken = jax.vmap(hard_route)(truth)  # 1 on the roads of the shortest route, 0 elsewhere

# %% [markdown]
# ## The network and its loss
#
# The layer sits between a small perceptron and a loss on routes, and everything is batched over
# the maps by `vmap`.


# %%
def costs_of(weights, features):
    first, second = weights
    return 0.7 + jax.nn.softplus(jnp.tanh(features @ first) @ second)


def loss(weights):
    routes = jax.vmap(soft_route)(costs_of(weights, features))
    return jnp.mean(jnp.sum((routes - taken) ** 2, axis=1))


keys = jax.random.split(jax.random.key(1))
weights = (jax.random.normal(keys[0], (FEATURES, 8)), jax.random.normal(keys[1], (8,)) / 3)
rule = optax.adam(0.03)
state = rule.init(weights)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def step(weights, state):
    value, slope = jax.value_and_grad(loss)(weights)
    move, state = rule.update(slope, state)
    return optax.apply_updates(weights, move), state, value


values = []
for _ in range(120):
    weights, state, value = step(weights, state)
    values.append(float(value))
found = jax.vmap(hard_route)(costs_of(weights, features))
same = float(jnp.sum(found * taken) / jnp.sum(taken))
print(f"loss {values[0]:.2f} before, {values[-1]:.2f} after; {same:.0%} of the roads agree")
assert values[-1] < values[0] / 2 and same > 0.8

# %% [markdown]
# Left: a route that was taken, in the first map. Right: where the trained network sends
# travellers.

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
pos = [(k % SIDE, -(k // SIDE)) for k in range(SIDE * SIDE)]
soft = soft_route(costs_of(weights, features)[0])
for ax, route, title in zip(axes, (taken[0], soft), ("taken", "predicted"), strict=True):
    jsp.plot.draw(grid, ax, pos=pos, edge_values=route, node_size=20).set_title(title)
