"""GraphSAGE: a network trained on sampled neighbourhoods, the sampling inside the compiled program.

A step draws 64 blogs, 8 linked ones of each and 4 of each of those
(`jsp.learning.sample_neighbors`, static sizes), and joins their features by means; nothing of the
size of the graph is touched. Two hundred steps are one `lax.scan`: the host is not asked in
between. Features are where a blog links to, in 32 random directions. With JAXSPV_DATA set the graph
is polblogs, else the bundled karate club.
Run: python examples/08_sampled_neighbours.py

Source: Hamilton, Ying, Leskovec, "Inductive representation learning on large graphs", NeurIPS 2017.
"""

# %%
import os
import pathlib

import jax
import jax.numpy as jnp
import optax

import jaxspv as jsp

FANOUTS, BATCH, STEPS, HIDDEN, FEATURES = (8, 4), 64, 200, 32, 32
FIRST_CLUB = jnp.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21])


# %%
def linked_blogs():
    file = pathlib.Path(os.environ.get("JAXSPV_DATA", "")) / "polblogs.mtx.gz"
    if file.is_file():
        return jsp.read_mtx(file), (jnp.arange(1490) >= 758).astype(int)
    return jsp.read_mtx(jsp.bundled("karate")), jnp.ones(34, int).at[FIRST_CLUB].set(0)


# %%
links, camp = linked_blogs()
n = links.shape[0]
keys = jax.random.split(jax.random.key(0), 6)
linked = jsp.learning.aggregate(links, axis=1) > 0
known = linked & (jax.random.uniform(keys[0], (n,)) < 0.3)
unknown = linked & ~known
x = jsp.learning.normalize(links, "row") @ jax.random.normal(keys[1], (n, FEATURES)) * 4


# %%
def mean_of(h, there):
    """The mean over the last axis of neighbours, of those that are there."""
    h = jnp.where(there[..., None], h, 0)
    return h.sum(-2) / jnp.maximum(there.sum(-1), 1)[..., None]


# %%
def model(weights, key, nodes):
    """(batch, 2) scores of nodes from a sample of what is around them."""
    first, second = weights
    near, far = jsp.learning.sample_neighbors(key, links, nodes, FANOUTS).nodes
    here, around, beyond = (x.at[v].get(mode="fill", fill_value=0) for v in (nodes, near, far))

    def join(weights, own, others, there):
        return jnp.concatenate([own, mean_of(others, there)], -1) @ weights

    h_here = jax.nn.relu(join(first, here, around, near < n))
    h_near = jax.nn.relu(join(first, around, beyond, far < n))
    return join(second, h_here, h_near, near < n)


# %%
weights = (
    jax.random.normal(keys[2], (2 * FEATURES, HIDDEN)) / (2 * FEATURES) ** 0.5,
    jax.random.normal(keys[3], (2 * HIDDEN, 2)) / (2 * HIDDEN) ** 0.5,
)
rule = optax.adam(0.01)


# %%
def loss(weights, key, nodes):
    scores = model(weights, key, nodes)
    return optax.softmax_cross_entropy_with_integer_labels(scores, camp[nodes]).mean()


# %%
def step(state, key):
    weights, moments = state
    draw, sample = jax.random.split(key)
    nodes = jax.random.choice(draw, n, (BATCH,), p=known / known.sum())
    value, slope = jax.value_and_grad(loss)(weights, sample, nodes)
    move, moments = rule.update(slope, moments)
    return (optax.apply_updates(weights, move), moments), value


# %%
@jax.jit
def train(weights):
    state = weights, rule.init(weights)
    (weights, _), losses = jax.lax.scan(step, state, jax.random.split(keys[4], STEPS))
    scores = model(weights, keys[5], jnp.arange(n))
    return weights, losses, jnp.sum((scores.argmax(1) == camp) & unknown) / jnp.sum(unknown)


# %%
weights, losses, right = train(weights)
print(f"loss {losses[0]:.2f} -> {losses[-20:].mean():.2f}, {right:.3f} of unknown blogs are right")
assert right > 0.75, "the neighbours did not help"

# %%
# What was learnt from samples holds for all neighbours: means of them are a product with the
# matrix, every row over its sum, and a layer is one call.
mean = jsp.learning.normalize(links, "row")
first, second = weights
h = jax.nn.relu(jnp.concatenate([x, mean @ x], -1) @ first)
scores = jnp.concatenate([h, mean @ h], -1) @ second
whole = jnp.sum((scores.argmax(1) == camp) & unknown) / jnp.sum(unknown)
print(f"with all neighbours instead of samples: {whole:.3f}")
assert whole > 0.75
