"""Learn the travel time of each road from observed travel times of whole trips.

The gradient of a shortest distance by the lengths of the edges is 1 along the route, so trips that
were observed tell the roads they used. Run: python examples/03_learn_road_costs.py
"""

import functools

import jax
import jax.numpy as jnp

import jaxspv as jsp

STEPS = 200

G = jsp.grid2d(jax.random.key(0), 12, drop=0.1)  # a town of 144 crossings
n = G.shape[0]
truth = jax.random.uniform(jax.random.key(1), (G.nse,), minval=1.0, maxval=5.0)
origins = jax.random.choice(jax.random.key(2), n, (16,), replace=False)
observed = jsp.sssp(G.with_data(truth), origins, parents=False).distances


def loss(theta):
    lengths = jax.nn.softplus(theta)
    trips = jsp.sssp(G.with_data(lengths), origins, parents=False).distances
    reached = jnp.isfinite(observed)
    error = jnp.where(reached, trips, 0) - jnp.where(reached, observed, 0)
    return jnp.sum(error**2) / jnp.sum(reached)


@functools.partial(jax.jit, donate_argnums=(0, 1, 2))
def adam(theta, mean, square, step):
    value, slope = jax.value_and_grad(loss)(theta)
    mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
    move = (mean / (1 - 0.9**step)) / (jnp.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return theta - 0.05 * move, mean, square, value


theta = jnp.full(G.nse, 2.0)
mean, square = jnp.zeros_like(theta), jnp.zeros_like(theta)
first = float(loss(theta))
for step in range(1, STEPS + 1):
    theta, mean, square, value = adam(theta, mean, square, jnp.float32(step))
last = float(loss(theta))
print(f"mean squared error of a trip: {first:.3f} before, {last:.4f} after {STEPS} steps")
assert last < first / 10, "learning failed"
