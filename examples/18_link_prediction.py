"""Link prediction: which musicians will have played together?

A fifth of the links of the bundled network of jazz musicians is hidden. Two layers of a graph
network make a vector of every musician from the others; a pair is as likely as the dot product of
its vectors, which `jsp.sddmm` takes at the stored entries of a matrix of pairs. Links that are
known and as many pairs drawn anew in every step train it; how often a hidden link is placed above a
pair without one (the area under the ROC curve) is compared with common neighbours.
Run: python examples/18_link_prediction.py

Source: Kipf, Welling, "Variational graph auto-encoders", NIPS workshop 2016 (the decoder); Gleiser,
Danon, "Community structure in jazz", Advances in Complex Systems 2003 (the data).
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxspv as jsp

WIDTH, STEPS, HIDDEN = 64, 300, 0.2

# %%
links = jsp.read_mtx(jsp.bundled("jazz")).astype(jnp.float32)
n = links.shape[0]
row, col = (np.asarray(v) for v in links.rowcol())
pairs = np.stack([row, col])[:, row < col]
rng = np.random.default_rng(0)
pairs = pairs[:, rng.permutation(pairs.shape[1])]
held = int(HIDDEN * pairs.shape[1])
hidden, seen = pairs[:, :held], pairs[:, held:]
there = np.asarray(links.todense()) > 0
absent = rng.integers(0, n, (2, 4 * held))
absent = absent[:, ~there[tuple(absent)] & (absent[0] < absent[1])][:, :held]


def matrix_of(pairs):
    """Both directions, each 1."""
    both = np.concatenate([pairs, pairs[::-1]], axis=1)
    return jsp.learning.from_edge_index(both, num_nodes=n)


known = matrix_of(seen)
A = jsp.learning.normalize(jsp.learning.add_self_loops(known), "sym")
print(f"{n} musicians, {seen.shape[1]} links known, {hidden.shape[1]} hidden")


# %%
def vectors(weights):
    """(n, WIDTH) of every musician; without features the first layer's weights are its inputs."""
    first, second = weights
    return A @ (jax.nn.relu(A @ first) @ second)


def loss(weights, key):
    h = vectors(weights)
    near = jsp.sddmm(known, h, h).data  # only at the stored entries: (entries,)
    i, j = jax.random.randint(key, (2, near.shape[0]), 0, n)
    far = jnp.sum(h[i] * h[j], axis=-1)  # pairs at random: few of them are links
    return jnp.mean(jax.nn.softplus(-near)) + jnp.mean(jax.nn.softplus(far))


keys = jax.random.split(jax.random.key(0), 3)
weights = (
    jax.random.normal(keys[0], (n, WIDTH)) / WIDTH**0.5,
    jax.random.normal(keys[1], (WIDTH, WIDTH)) / WIDTH**0.5,
)
rule = optax.adam(0.01)


@jax.jit
def train(weights, key):
    def step(state, key):
        weights, moments = state
        value, gradient = jax.value_and_grad(loss)(weights, key)
        move, moments = rule.update(gradient, moments)
        return (optax.apply_updates(weights, move), moments), value

    state = weights, rule.init(weights)
    (weights, _), losses = jax.lax.scan(step, state, jax.random.split(key, STEPS))
    return weights, losses


weights, losses = train(weights, keys[2])
print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}")


# %%
def area(scores):
    """How often a hidden link scores above a pair without one; ties count half."""
    above, below = (np.asarray(scores)[tuple(p)] for p in (hidden, absent))
    more = above[:, None] - below[None]
    return float(np.mean(more > 0) + np.mean(more == 0) / 2)


h = vectors(weights)
common = jsp.mxm(known, known, jsp.semirings.plus_pair).todense()
learned, counted = area(h @ h.T), area(common)
print(f"area under the curve: {learned:.3f}; by common neighbours {counted:.3f}")
assert learned > 0.85, "the vectors do not separate links from other pairs"
