"""A two-layer network whose predictions spread by personalised PageRank over citations (APPNP).

`Z = a (I - (1 - a) A)^-1 H`: a perceptron makes H from noisy features of each paper, ten sparse
products spread it along the citations. A paper's class is the nearest of four seed papers, found by
one search from all of them. With JAXSPV_DATA set the graph is cit-HepPh, else an R-MAT one.
Run: python examples/04_appnp.py

Source: Gasteiger, Bojchevski, Guennemann, "Predict then propagate", ICLR 2019.
"""

# %%
import os
import pathlib

import jax
import jax.numpy as jnp
import optax

import jaxspv as jsp

CLASSES, FEATURES, HIDDEN, RESTART, HOPS = 4, 16, 32, 0.1, 10

# %% [markdown]
# ## The graph
#
# Citations count in both directions. With the real graph at hand it has some 34,000 papers;
# otherwise an R-MAT graph stands in for it.


# %%
def citations():
    file = pathlib.Path(os.environ.get("JAXSPV_DATA", "")) / "cit-HepPh.mtx.gz"
    if not file.is_file():
        return jsp.generators.rmat(jax.random.key(0), 10, edge_factor=6)
    row, col = jsp.read_mtx(file).rowcol()
    n = int(max(row.max(), col.max())) + 1
    both = jnp.concatenate([row, col]), jnp.concatenate([col, row])
    return jsp.from_edges(*both, shape=(n, n), dup=jsp.monoids.max_)


# %% [markdown]
# `with_data` scales each entry by the degrees of both its ends: the symmetric normalisation of
# graph networks.

# %%
A = citations().astype(jnp.float32)
n = A.shape[0]
degree = A @ jnp.ones(n)
row, col = A.rowcol()
root = 1 / jnp.sqrt(jnp.maximum(degree, 1))
A = A.with_data(root[jnp.minimum(row, n - 1)] * root[jnp.minimum(col, n - 1)])  # normalised

# %% [markdown]
# ## Classes and features
#
# One search from four seed papers gives every paper the class of the nearest seed; the features
# are a prototype of the class and much noise.

# %%
seeds = jax.random.choice(jax.random.key(1), n, (CLASSES,), p=degree, replace=False)
levels = jsp.bfs(A, seeds, parents=False).levels  # all four in one traversal
connected = (levels >= 0).all(0)
label = jnp.argmin(jnp.where(levels >= 0, levels, n), axis=0)
keys = jax.random.split(jax.random.key(2), 5)
prototypes = jax.random.normal(keys[0], (CLASSES, FEATURES))
x = prototypes[label] + 3 * jax.random.normal(keys[1], (n, FEATURES))
known = connected & (jax.random.uniform(keys[2], (n,)) < 0.3)
unknown = connected & ~known

# %% [markdown]
# ## Predict, then propagate
#
# The perceptron sees one paper at a time. `propagate` is personalised PageRank on its outputs:
# ten products of the matrix with a dense array, each mixed with the start.


# %%
def perceptron(weights, x):
    first, second = weights
    return jax.nn.relu(x @ first) @ second


def propagate(h):
    def hop(z, _):
        return (1 - RESTART) * (A @ z) + RESTART * h, None

    return jax.lax.scan(hop, h, None, length=HOPS)[0]


def train(model):
    rule = optax.adamw(0.01, weight_decay=0.02)
    weights = (
        jax.random.normal(keys[3], (FEATURES, HIDDEN)) / FEATURES**0.5,
        jax.random.normal(keys[4], (HIDDEN, CLASSES)) / HIDDEN**0.5,
    )
    state = rule.init(weights)

    def loss(weights):
        each = optax.softmax_cross_entropy_with_integer_labels(model(weights), label)
        return jnp.sum(jnp.where(known, each, 0)) / jnp.sum(known)

    @jax.jit
    def step(weights, state):
        value, slope = jax.value_and_grad(loss)(weights)
        move, state = rule.update(slope, state, weights)
        return optax.apply_updates(weights, move), state, value

    for _ in range(60):
        weights, state, _ = step(weights, state)
    right = model(weights).argmax(1) == label
    return float(jnp.sum(right & unknown) / jnp.sum(unknown))


# %% [markdown]
# Trained on 30% of the labels, with and without the citations:

# %%
alone = train(lambda w: perceptron(w, x))
spread = train(lambda w: propagate(perceptron(w, x)))
print(f"{n} papers, accuracy on those without a label: {alone:.2f} alone, {spread:.2f} spread")
assert spread > alone, "the citations did not help"
