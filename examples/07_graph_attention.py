"""A graph attention network that separates the camps of linked weblogs (GAT).

Each blog attends to those it shares a link with: `jsp.learning.attention` with the score of the
paper, `leaky_relu(a <- x_i + b <- x_j)`, a function of the two endpoints of ONE link. Blogs have no
features but a vector that is learned; eight of each camp are known. With JAXSPV_DATA set the graph
is polblogs (blogs around the US election of 2004, those of one camp listed first), else the bundled
karate club.
Run: python examples/07_graph_attention.py

Source: Veličković et al., "Graph attention networks", ICLR 2018; Adamic, Glance, "The political
blogosphere and the 2004 US election", LinkKDD 2005.
"""

# %%
import os
import pathlib

import jax
import jax.numpy as jnp
import optax

import jaxspv as jsp

HEADS, FEATURES, KNOWN = 4, 8, 8
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
linked = jsp.learning.aggregate(links, axis=1) > 0
A = jsp.learning.add_self_loops(links.astype(jnp.float32))
keys = jax.random.split(jax.random.key(0), 6)
order = jax.random.permutation(keys[0], n)
rank = jnp.zeros(n, int)
for c in (0, 1):  # the first few of each camp in a random order are known
    mine = linked & (camp == c)
    place = jnp.cumsum(mine[order]) * mine[order]
    rank = rank.at[order].add(place)
known, unknown = linked & (rank <= KNOWN), linked & (rank > KNOWN)


# %%
def layer(weights, x):
    """(n, in) -> (n, heads, out): every head has scores of its own."""
    W, ask, answer = weights
    h = jnp.einsum("ni,iho->nho", x, W)

    def score(q, k):  # of one link: (heads,) numbers from each end
        return jax.nn.leaky_relu(q + k, 0.2)

    return jsp.learning.attention(A, jnp.sum(h * ask, -1), jnp.sum(h * answer, -1), h, score=score)


# %%
def model(weights):
    blogs, first, second = weights
    h = jax.nn.elu(layer(first, blogs)).reshape(n, -1)
    return layer(second, h).mean(axis=1)


# %%
def weights_of(key, inputs, outputs):
    parts = jax.random.split(key, 3)
    W = jax.random.normal(parts[0], (inputs, HEADS, outputs)) / inputs**0.5
    ask, answer = (jax.random.normal(k, (HEADS, outputs)) / outputs**0.5 for k in parts[1:])
    return W, ask, answer


# %%
weights = (
    0.3 * jax.random.normal(keys[1], (n, 16)),
    weights_of(keys[2], 16, FEATURES),
    weights_of(keys[3], HEADS * FEATURES, 2),
)
rule = optax.adamw(0.03, weight_decay=0.01)
state = rule.init(weights)


# %%
def loss(weights):
    each = optax.softmax_cross_entropy_with_integer_labels(model(weights), camp)
    return jnp.sum(jnp.where(known, each, 0)) / jnp.sum(known)


# %%
@jax.jit
def step(weights, state):
    value, slope = jax.value_and_grad(loss)(weights)
    move, state = rule.update(slope, state, weights)
    return optax.apply_updates(weights, move), state, value


# %%
for _ in range(40):
    weights, state, value = step(weights, state)
right = jnp.sum((model(weights).argmax(1) == camp) & unknown) / jnp.sum(unknown)
print(f"{int(linked.sum())} blogs, {int(known.sum())} known: {right:.3f} of the others are right")
assert right > 0.7, "the links did not separate the camps"
