"""Segments of a signal: a semi-Markov model with its entropy and its best segmentations.

A label holds for several samples in a row, and its score looks at all of them together. Vertices
are positions with the label that ends there; an edge is a segment. Sums over paths are sums over
all segmentations.
Run: python examples/24_segments.py

Source: Sarawagi and Cohen, "Semi-Markov conditional random fields for information extraction",
NIPS 2004.
"""

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import jaxspv as jsp

S = jsp.semirings

# %% [markdown]
# ## A signal of pieces
#
# A noisy signal is constant over segments of at most twelve samples. The score of a segment is how
# well its own level fits all of its samples, less a price for each segment; neighbouring segments
# have different levels.

# %%
LEVELS, LONGEST, NOISE, N = np.array([-1.0, 0.0, 1.0]), 12, 0.6, 80
rng = np.random.default_rng(0)


def drawn(n):
    truth, level = [], 0
    while len(truth) < n:
        level = (level + rng.integers(1, 3)) % 3
        truth += [level] * int(rng.integers(4, LONGEST + 1))
    truth = np.array(truth[:n])
    return truth, LEVELS[truth] + rng.normal(0, NOISE, n)


def lattice(n):
    """The graph of segments: vertex 0 begins, 1 + 3 (t - 1) + c ends a segment of c before t."""
    edges = []
    for begin in range(n):
        for end in range(begin + 1, min(begin + LONGEST, n) + 1):
            for c in range(3):
                for before in [b for b in range(3) if b != c] if begin else [2]:
                    edges.append((1 + 3 * (begin - 1) + before, 1 + 3 * (end - 1) + c))
    row, col = np.array(sorted(edges)).T
    size = 1 + 3 * n
    return jsp.from_edges(row, col, shape=(size, size)).trim(), row, col


def segment_of(vertex):
    """(end, label) of a vertex; the start ends at 0."""
    return (vertex + 2) // 3, (vertex + 2) % 3


def total(G, values, semiring):
    """The sum over all segmentations: what the last three vertices hold together."""
    x = jsp.closure(G.with_data(values), semiring, start=0).x
    return semiring.add.reduce(jax.tree.map(lambda v: v[-3:], x), 0)


# %% [markdown]
# ## All segmentations of a short signal
#
# Six samples can be listed: Python walks all segmentations, and knows no semiring.

# %%
entropy, best = S.entropy(), S.k_best(5)


def listed(source, target, n):
    """Each segmentation, as its edges."""
    found = []

    def walk(vertex, path):
        if segment_of(vertex)[0] == n:
            found.append(path)
        for k in np.flatnonzero(source == vertex):
            walk(target[k], [*path, k])

    walk(0, [])
    return found


short, source, target = lattice(6)
values = jnp.asarray(rng.normal(size=short.nse), jnp.float32)
paths = listed(source, target, 6)
weights = np.array([np.asarray(values)[path].sum() for path in paths])
log_z = np.log(np.exp(weights).sum())
want = log_z, -(np.exp(weights - log_z) * (weights - log_z)).sum()
np.testing.assert_allclose(total(short, entropy.lift(values), entropy), want, rtol=1e-4)
costs = total(short, best.lift(-values), best)[0]
np.testing.assert_allclose(-costs, np.sort(weights)[::-1][:5], rtol=1e-4)
print(f"{len(paths)} segmentations: log Z {want[0]:.3f}, entropy {want[1]:.3f}, as by the closure")

# %% [markdown]
# ## The long signal, learnt
#
# The price of a segment and the precision of a sample are learnt from ten signals whose segments
# are known: the score of the truth less log Z.

# %%
G, row, col = lattice(N)
print(G.shape[0], "vertices,", G.nse, "segments that may be")
number = {pair: k for k, pair in enumerate(zip(row.tolist(), col.tolist(), strict=True))}


def scores(signal, price, precision):
    """The score of each edge, by sums over prefixes of the signal."""
    (begin, _), (end, label) = segment_of(row), segment_of(col)
    misfit = jnp.cumsum((signal[:, None] - LEVELS) ** 2, axis=0)
    misfit = jnp.concatenate([jnp.zeros((1, 3)), misfit])
    return -precision / 2 * (misfit[end, label] - misfit[begin, label]) - price


def edges_of(truth):
    """Which edges the true segments are, (edges,) of 0 and 1."""
    ends = np.append(np.flatnonzero(np.diff(truth)) + 1, N)
    path = [0, *(1 + 3 * (end - 1) + truth[end - 1] for end in ends)]
    chosen = np.zeros(G.nse, np.float32)
    chosen[[number[pair] for pair in zip(path[:-1], path[1:], strict=True)]] = 1
    return chosen


examples = [drawn(N) for _ in range(10)]
chosen = jnp.asarray(np.stack([edges_of(truth) for truth, _ in examples]))
signals = jnp.asarray(np.stack([signal for _, signal in examples]), jnp.float32)


def loss(parameters):
    def one(signal, chosen):
        values = scores(signal, parameters[0], jnp.exp(parameters[1]))
        return total(G, values, S.log_plus) - values @ chosen

    return jax.vmap(one)(signals, chosen).mean()


parameters, optimizer = jnp.zeros(2), optax.adam(0.1)
state, losses = optimizer.init(parameters), []
step = jax.jit(jax.value_and_grad(loss))
for _ in range(80):
    value, slope = step(parameters)
    updates, state = optimizer.update(slope, state)
    parameters = optax.apply_updates(parameters, updates)
    losses.append(float(value))
price, precision = float(parameters[0]), float(jnp.exp(parameters[1]))
print(f"loss {losses[0]:.1f} -> {losses[-1]:.1f}; price {price:.2f}, noise {precision**-0.5:.2f}")
assert losses[-1] < losses[0] / 2 and abs(precision**-0.5 - NOISE) < 0.1

# %% [markdown]
# ## Where it is unsure
#
# The gradient gives the probability of each segment; summed over those that cover a sample, of its
# label. Back-pointers give the best segmentations.

# %%
truth, signal = drawn(N)
values = scores(jnp.asarray(signal, jnp.float32), price, precision)
share = np.asarray(jax.grad(lambda v: total(G, v, S.log_plus))(values))
(begin, _), (end, label) = segment_of(row), segment_of(col)
marginal = np.zeros((N + 1, 3))
np.add.at(marginal, (begin, label), share)
np.add.at(marginal, (end, label), -share)
marginal = marginal.cumsum(0)[:N]
assert np.allclose(marginal.sum(1), 1, atol=2e-3)  # each sample has a label

log_z, unsure = total(G, entropy.lift(values), entropy)
costs, edge, rank = (np.asarray(v) for v in jsp.closure(
    G.with_data(best.lift(-values)), best, start=0).x)  # fmt: skip


def followed(vertex, r):
    """The labels of the samples on the r-th best path to a vertex."""
    labels = np.zeros(N, int)
    while vertex:
        k, r = edge[vertex, r], rank[vertex, r]
        labels[begin[k] : end[k]] = label[k]
        vertex = row[k]
    return labels


last = np.arange(G.shape[0] - 3, G.shape[0])
order = np.argsort(costs[last].ravel())[:5]
found = [followed(last[at // 5], at % 5) for at in order]
chances = np.exp(-costs[last].ravel()[order] - float(log_z))
single = np.abs(signal[:, None] - LEVELS).argmin(1)
right = [(labels == truth).mean() for labels in (single, found[0], marginal.argmax(1))]
print(f"entropy {unsure:.2f} nats; the five best have probability", np.round(chances, 5))
print("right: single samples {:.0%}, best segments {:.0%}, marginals {:.0%}".format(*right))
assert min(right[1:]) > right[0]

fig, axes = plt.subplots(3, 1, figsize=(9, 6), layout="constrained", sharex=True)
axes[0].plot(signal, ".", color="gray")
axes[0].step(np.arange(N), LEVELS[truth], where="mid", label="truth")
axes[0].step(np.arange(N), LEVELS[found[0]], "--", where="mid", label="best")
axes[0].legend(loc="upper right")
axes[1].imshow(marginal.T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
axes[1].set(yticks=range(3), yticklabels=LEVELS, title="probability of each label")
axes[2].imshow(np.stack(found), aspect="auto", cmap="viridis")
axes[2].set(yticks=range(5), yticklabels=np.round(chances, 3), title="the five best")
plt.show()
