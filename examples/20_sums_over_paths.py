"""Sums over paths: what a chain of tags, and a road map with two costs, have in common.

`closure` adds up all paths of a graph over any semiring. Over log_plus that is the partition
function of a conditional random field, and its gradient the marginals; over k_best its likeliest
sequences; over pairs of numbers the fastest route, and of those the widest.
Run: python examples/20_sums_over_paths.py

Source: Mohri, "Semiring frameworks and algorithms for shortest-distance problems", 2002; Eisner,
"Inside-outside and forward-backward algorithms are just backprop", 2016.
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
# ## A chain of tags
#
# Vertex 0 is the start, the last one the end; between them each of sixty steps has four states.
# A path is a sequence of states, and its score the sum of its edges: a transition, and how well the
# state fits what was seen.

# %%
STEPS, STATES = 60, 4
state = 1 + np.arange(STEPS * STATES).reshape(STEPS, STATES)
end = STEPS * STATES + 1
edges = [(0, state[0, b], -1, b, 0) for b in range(STATES)]
edges += [
    (state[t, a], state[t + 1, b], a, b, t + 1)
    for t in range(STEPS - 1) for a in range(STATES) for b in range(STATES)
]  # fmt: skip
edges += [(state[-1, a], end, -1, -1, -1) for a in range(STATES)]
source, target, before, after, step = np.array(sorted(edges)).T
lattice = jsp.from_edges(source, target, shape=(end + 1, end + 1)).trim()


def scores(transitions, seen):
    """The values of the edges; (STATES, STATES) and (STEPS, STATES)."""
    moves = jnp.where((before >= 0) & (after >= 0), transitions[before, after], 0)
    return moves + jnp.where(after >= 0, seen[step, after], 0)


def log_partition(values):
    """The log of the sum over all paths of exp(score)."""
    return jsp.closure(lattice.with_data(values), S.log_plus, start=0).x[end]


# %% [markdown]
# ## Learning the transitions
#
# The truth stays in a state for a while; what is seen is noisy. The likelihood of the truth is its
# score less the log of the sum over all sequences.

# %%
rng = np.random.default_rng(0)


def walk():
    states = [0]
    for _ in range(STEPS - 1):
        states.append((states[-1] + 1) % STATES if rng.random() < 0.12 else states[-1])
    truth = np.array(states)
    return truth, 2 * (np.eye(STATES)[truth] + rng.normal(size=(STEPS, STATES)))


truths, seen = (jnp.array(v) for v in zip(*(walk() for _ in range(30)), strict=True))


def loss(transitions):
    def one(truth, seen):
        own = seen[jnp.arange(STEPS), truth].sum() + transitions[truth[:-1], truth[1:]].sum()
        return log_partition(scores(transitions, seen)) - own

    return jax.vmap(one)(truths, seen).mean()


transitions, optimizer = jnp.zeros((STATES, STATES)), optax.adam(0.2)
optimizer_state, losses = optimizer.init(transitions), []
value_and_grad = jax.jit(jax.value_and_grad(loss))
for _ in range(60):
    value, slope = value_and_grad(transitions)
    updates, optimizer_state = optimizer.update(slope, optimizer_state)
    transitions = optax.apply_updates(transitions, updates)
    losses.append(float(value))
print(f"loss {losses[0]:.1f} -> {losses[-1]:.1f}")
print(np.round(np.asarray(jax.nn.softmax(transitions, axis=1)), 2))

# %% [markdown]
# ## Marginals, entropy, the five best
#
# The derivative of the log of the sum by an edge's score is the probability of the edge. Entropy
# and the best sequences come from the same call over other semirings.

# %%
truth, shown = walk()
values = scores(transitions, jnp.asarray(shown, jnp.float32))
edge_share = jax.grad(log_partition)(values)
inner = (after >= 0).nonzero()[0]
share = jnp.zeros((STEPS, STATES)).at[step[inner], after[inner]].add(edge_share[inner])
print("marginals sum to one:", bool(jnp.allclose(share.sum(1), 1, atol=1e-3)))

entropy = S.entropy()
level, uncertainty = jsp.closure(lattice.with_data(entropy.lift(values)), entropy, start=0).x
print(
    f"log Z {level[end]:.2f}, entropy {uncertainty[end]:.2f} of {STEPS * np.log(STATES):.1f} nats"
)

best = S.k_best(5)
costs, edge, rank = (
    np.asarray(v) for v in jsp.closure(lattice.with_data(best.lift(-values)), best, start=0).x
)


def followed(r):
    """The states of the r-th best path, by its back-pointers."""
    at, found = end, []
    while at:
        at, r = source[edge[at, r]], rank[at, r]
        found.append((at - 1) % STATES)
    return np.array(found[-2::-1])


sequences = np.stack([followed(r) for r in range(5)])
print("probabilities of the five best:", np.round(np.exp(-costs[end] - float(level[end])), 3))
print(
    "right:",
    (sequences == truth).mean(1).round(2),
    "single steps:",
    (shown.argmax(1) == truth).mean(),
)

# %% [markdown]
# ## Sequences drawn under jit
#
# From the end backwards: the edge into a vertex is drawn by its share of what arrives there. The
# sums to all vertices are one call; each draw is a scan.

# %%
into = np.full((end + 1, STATES), -1)
for k in range(len(target)):
    into[target[k], int((into[target[k]] >= 0).sum())] = k


@jax.jit
def drawn(key, values):
    """(STEPS,) the states of one path, with the probability of its score."""
    sums = jsp.closure(lattice.with_data(values), S.log_plus, start=0).x

    def back(at, key):
        edges = jnp.asarray(into)[at]
        arrives = sums[jnp.asarray(source)[edges]] + values[edges]
        k = jax.random.categorical(key, jnp.where(edges >= 0, arrives, -jnp.inf))
        at = jnp.asarray(source)[edges[k]]
        return at, (at - 1) % STATES

    return jax.lax.scan(back, end, jax.random.split(key, STEPS))[1][::-1]


keys = jax.random.split(jax.random.key(0), 4000)
samples = jax.vmap(drawn, (0, None))(keys, values)
often = jax.nn.one_hot(samples, STATES).mean(0)
print(
    f"largest difference between shares of 4000 draws and marginals: {abs(often - share).max():.3f}"
)
assert abs(often - share).max() < 0.05

fig, axes = plt.subplots(3, 1, figsize=(9, 5), layout="constrained", sharex=True)
for ax, picture, title in zip(
    axes, (share, often, np.eye(STATES)[sequences[0]]),
    ("marginals, by the gradient", "shares of 4000 draws", "the best sequence"), strict=True,
):  # fmt: skip
    ax.imshow(np.asarray(picture).T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
    ax.plot(truth, "r.", markersize=3)
    ax.set(title=title, yticks=range(STATES), ylabel="state")
axes[-1].set_xlabel("step (red: the truth)")

# %% [markdown]
# ## Routes by two criteria
#
# Minnesota's roads with a time and a width each. Values are pairs: the shorter time wins, and of
# equal times the wider route, whose width is that of its narrowest road.

# %%
roads = jsp.read_mtx(jsp.bundled("minnesota"))
row, col = (np.asarray(v) for v in roads.rowcol())
pair = np.minimum(row, col) * 7919 + np.maximum(row, col)  # the same both ways
minutes, width = 1 + pair % 3, 1 + pair // 3 % 97
fastest_widest = S.lexicographic(S.min_plus, S.max_min)
lifted = fastest_widest.lift(jnp.asarray(minutes, jnp.float32), jnp.asarray(width, jnp.float32))
found = jsp.closure(roads.with_data(lifted), fastest_widest, start=0)
time, wide = found.x
widest = jsp.closure(roads.with_data(lifted[1]), S.max_min, start=0).x
there = np.isfinite(time)
print(f"{int(found.iterations)} products; wider by a detour: {(widest > wide)[there].mean():.0%}")


def arrival(minutes):
    """The time to the farthest junction."""
    lifted = fastest_widest.lift(minutes, jnp.asarray(width, jnp.float32))
    x = jsp.closure(roads.with_data(lifted), fastest_widest, start=0).x
    return x[0][np.where(there, time, -1).argmax()]


on_route = jax.grad(arrival)(lifted[0])
print(f"the route to the farthest junction: {float(arrival(lifted[0])):.0f} minutes over",
      f"{int((on_route > 0).sum())} roads")  # fmt: skip

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.scatter(time[there], wide[there], s=4, label="the fastest route")
ax.scatter(time[there], widest[there], s=4, label="any route")
ax.set(xlabel="minutes", ylabel="narrowest road on the way")
ax.legend()
plt.show()
