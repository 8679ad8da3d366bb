"""Graph attention with Equinox: papers find the community that they belong to (GAT).

The network of example 15 as `eqx.Module`s. Here the matrix of citations is a field of the model, as
any array is: Equinox takes its values for parameters unless they are marked as none. Both are
shown: first only the layers learn, then the values too, one bias a link. Graph and labels are those
of example 15: with JAXSPV_DATA set the papers of the 28-core of cit-HepPh, else the bundled karate
club; the labels are structural, the communities that `jsp.louvain` finds with all links, and a
paper's features are where it links to, in 32 random directions.
Run: python examples/16_graph_attention_equinox.py

Source: Veličković et al., "Graph attention networks", ICLR 2018.
"""

import os
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

import jaxspv as jsp

HEADS, FEATURES, KNOWN, STEPS = 4, 8, 16, 25


# %%
def citations():
    """The links, symmetric, each 1."""
    file = pathlib.Path(os.environ.get("JAXSPV_DATA", "")) / "cit-HepPh.mtx.gz"
    if not file.is_file():
        return jsp.read_mtx(jsp.bundled("karate"))
    S = jsp.read_mtx(file).astype(jnp.float32).to_scipy()
    S = S + S.T
    S.setdiag(0)
    S.eliminate_zeros()
    dense = jsp.core_number(jsp.from_scipy(S)).cores >= 28
    return jsp.from_scipy(((S > 0) * 1.0)[dense][:, dense].tocsr())


links = citations().astype(jnp.float32)
n = links.shape[0]
communities = jsp.louvain(links)
_, label, size = jnp.unique(communities.labels, return_inverse=True, return_counts=True)
classes = size.shape[0]
print(f"{n} papers, {links.nse // 2} links, {classes} communities of {int(size.min())} or more")

# %%
keys = jax.random.split(jax.random.key(0), 3)
order = jax.random.permutation(keys[0], n)
place = jnp.cumsum(jax.nn.one_hot(label[order], classes, dtype=jnp.int32), axis=0)
rank = jnp.zeros(n, int).at[order].set(place[jnp.arange(n), label[order]])
known = rank <= jnp.minimum(KNOWN, size[label] // 2)
x = jsp.learning.normalize(links, "row") @ jax.random.normal(keys[1], (n, 32)) * 4
A = jsp.learning.add_self_loops(links)
A = A.with_data(jnp.zeros_like(A.data))  # biases of links, which a softmax adds to its scores


# %%
class Attention(eqx.Module):
    """(n, in) -> (n, heads, out); every head has scores of its own."""

    project: jax.Array
    ask: jax.Array
    answer: jax.Array

    def __init__(self, inputs, outputs, *, key):
        parts = jax.random.split(key, 3)
        self.project = jax.random.normal(parts[0], (inputs, HEADS, outputs)) / inputs**0.5
        self.ask, self.answer = jax.random.normal(parts[1], (2, HEADS, outputs)) / outputs**0.5

    def __call__(self, A, x):
        h = jnp.einsum("ni,iho->nho", x, self.project)
        q, k = jnp.sum(h * self.ask, -1), jnp.sum(h * self.answer, -1)
        return jsp.learning.attention(
            A, q, k, h, A.data, score=lambda q, k: jax.nn.leaky_relu(q + k, 0.2)
        )


class Network(eqx.Module):
    links: jsp.CSR
    first: Attention
    second: Attention

    def __init__(self, links, *, key):
        self.links = links
        self.first = Attention(32, FEATURES, key=key)
        self.second = Attention(HEADS * FEATURES, classes, key=jax.random.fold_in(key, 1))

    def __call__(self, x):
        h = jax.nn.elu(self.first(self.links, x)).reshape(x.shape[0], -1)
        return self.second(self.links, h).mean(axis=1)


# %% [markdown]
# What learns is said by a tree of truth values. `eqx.is_inexact_array` takes every float array, the
# values of the matrix with them; `eqx.tree_at` takes those out.


# %%
def train(model, learns):
    rule = optax.adamw(0.02, weight_decay=0.001)
    moving, fixed = eqx.partition(model, learns)
    state = rule.init(moving)

    @eqx.filter_jit
    def step(moving, state, fixed, x):
        def loss(moving):
            scores = eqx.combine(moving, fixed)(x)
            each = optax.softmax_cross_entropy_with_integer_labels(scores, label)
            return jnp.sum(jnp.where(known, each, 0)) / jnp.sum(known)

        value, gradient = eqx.filter_value_and_grad(loss)(moving)
        move, state = rule.update(gradient, state, moving)
        return eqx.apply_updates(moving, move), state, value

    for _ in range(STEPS):
        moving, state, value = step(moving, state, fixed, x)
    model = eqx.combine(moving, fixed)
    right = jnp.sum((model(x).argmax(1) == label) & ~known) / jnp.sum(~known)
    return model, float(value), float(right)


model = Network(A, key=keys[2])
everything = jax.tree.map(eqx.is_inexact_array, model)
layers = eqx.tree_at(lambda tree: tree.links.data, everything, False)
for name, learns in (("layers", layers), ("layers and values of the matrix", everything)):
    trained, value, right = train(model, learns)
    moved = float(jnp.abs(trained.links.data - A.data).max())
    print(f"{name}: loss {value:.2f}, {right:.3f} of the unknown; biases up to {moved:.2f}")
    assert right > 0.7, "the links did not separate the communities"
    assert (moved > 0) == learns.links.data
