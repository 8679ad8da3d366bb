"""A hidden Markov model of ten thousand states: sparse transitions, marginals by the gradient.

A robot on a grid of 100 x 100 cells moves to a neighbour or stays, and a noisy sensor says where it
may be. A dense transition matrix has 10^8 entries; the sparse one 5 a state. The forward algorithm
is a product a step, the marginals its gradient, the likeliest path that of another semiring.
Run: python examples/22_sparse_hidden_markov_model.py

Source: Rabiner, "A tutorial on hidden Markov models", 1989; Eisner, "Inside-outside and
forward-backward algorithms are just backprop", 2016.
"""

# %%
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxspv as jsp

S = jsp.semirings

# %% [markdown]
# ## The model
#
# Walls cut the grid; a robot in front of one turns elsewhere. Transitions are logs of
# probabilities, each row of which sums to one.


# %%
def model(side, seed=0):
    """(free cells' transitions as a sparse matrix of logs, the (cells, 2) places)."""
    rng = np.random.default_rng(seed)
    wall = np.zeros((side, side), bool)
    for k in range(side // 10, side, side // 5):
        wall[:, k] = True
        wall[rng.integers(side, size=3), k] = False  # doors
    cell = np.arange(side * side).reshape(side, side)
    moves = [(cell, cell)]
    for axis in (0, 1):
        near, far = np.take(cell, range(side - 1), axis), np.take(cell, range(1, side), axis)
        moves += [(near, far), (far, near)]
    row, col = (np.concatenate([v[k].ravel() for v in moves]) for k in (0, 1))
    free = (row == col) | ~(wall.ravel()[row] | wall.ravel()[col])
    row, col = row[free], col[free]
    weight = rng.uniform(0.5, 1.5, row.size)
    weight /= np.bincount(row, weight)[row]
    A = jsp.from_edges(row, col, np.log(weight).astype(np.float32), shape=(side**2, side**2))
    return A.trim(), np.argwhere(np.ones((side, side))), wall


def walked(A, steps, start, seed=1):
    """A path drawn from the model, in NumPy."""
    rng, M = np.random.default_rng(seed), A.to_scipy()
    path = [start]
    for _ in range(steps - 1):
        begin, end = M.indptr[path[-1] : path[-1] + 2]
        share = np.exp(M.data[begin:end].astype(float))
        path.append(int(rng.choice(M.indices[begin:end], p=share / share.sum())))
    return np.array(path)


def sensed(places, path, noise=4.0, seed=2):
    """(steps, cells) logs of what the sensor says, up to a constant."""
    seen = places[path] + np.random.default_rng(seed).normal(0, noise, (len(path), 2))
    return seen, lambda s: -((s - places) ** 2).sum(-1) / (2 * noise**2)


# %% [markdown]
# ## Forward, and its gradient
#
# A step is `x A` and what is seen. `value_and_grad` by what is seen gives log P and the
# probability of each cell at each step.


# %%
def forward(A, scores, semiring):
    """(cells,) sums over the paths to each cell; scores (steps, cells)."""

    def step(x, score):
        return jsp.vxm(x, A, semiring) + score, None

    start = scores[0] - jnp.log(float(A.shape[0]))
    return jax.lax.scan(step, start, scores[1:])[0]


@jax.jit
def marginals(A, scores):
    def total(scores):
        return jax.nn.logsumexp(forward(A, scores, S.log_plus))

    return jax.value_and_grad(total)(scores)


@jax.jit
def likeliest(A, scores):
    """The best path: the gradient of its score marks one cell a step."""

    def best(scores):
        return forward(A, scores, S.max_plus).max()

    return jax.grad(best)(scores).argmax(1)


@jax.jit
def by_dense_scan(dense, scores):
    """The same with a dense matrix, forward and backward written out."""

    def ahead(x, score):
        x = jax.nn.logsumexp(x[:, None] + dense, axis=0) + score
        return x, x

    def back(y, score):
        y = jax.nn.logsumexp(dense + (y + score), axis=1)
        return y, y

    first = scores[0] - jnp.log(float(len(dense)))
    last, rest = jax.lax.scan(ahead, first, scores[1:])
    _, behind = jax.lax.scan(back, jnp.zeros(len(dense)), scores[1:], reverse=True)
    total = jax.nn.logsumexp(last)
    alpha = jnp.concatenate([first[None], rest])
    beta = jnp.concatenate([behind, jnp.zeros((1, len(dense)))])
    return total, jnp.exp(alpha + beta - total)


def seconds(function, *args):
    """The least of three calls, after the first."""
    jax.block_until_ready(function(*args))
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        jax.block_until_ready(function(*args))
        taken.append(time.perf_counter() - start)
    return min(taken)


# %% [markdown]
# ## A small grid, both ways
#
# Forward and backward written out over a dense matrix are the check: 400 states here, where the
# dense form still is at ease.

# %%
STEPS = 100
A, places, _ = model(20)
path = walked(A, STEPS, 210)
seen, score = sensed(places, path, noise=2.0)
scores = jnp.asarray(np.stack([score(s) for s in seen]), jnp.float32)
dense = jnp.full(A.shape, -jnp.inf).at[A.rowcol()].set(A.data)
(value, share), (want, want_share) = marginals(A, scores), by_dense_scan(dense, scores)
assert np.isclose(value, want, rtol=1e-5) and np.allclose(share, want_share, atol=1e-3)
print(f"log P {value:.3f}, by a dense scan {want:.3f}; marginals differ by at most",
      f"{float(abs(share - want_share).max()):.0e}")  # fmt: skip
sparse_time, dense_time = seconds(marginals, A, scores), seconds(by_dense_scan, dense, scores)
KIND = jax.devices()[0].device_kind
print(
    f"400 states: {1e3 * sparse_time:.1f} ms, by a dense scan {1e3 * dense_time:.1f} ms, on a", KIND
)

# %% [markdown]
# ## Ten thousand states
#
# The dense matrix alone would take 400 MB, and a step 10^8 exponentials.

# %%
A, places, wall = model(100)
path = walked(A, STEPS, 4540)
seen, score = sensed(places, path)
scores = jnp.asarray(np.stack([score(s) for s in seen]), jnp.float32)
value, share = marginals(A, scores)
assert np.allclose(share.sum(1), 1, atol=2e-3)
best = np.asarray(likeliest(A, scores))
moves = set(zip(*(np.asarray(v).tolist() for v in A.rowcol()), strict=True))
assert all(move in moves for move in zip(best[:-1], best[1:], strict=True))  # it can be walked


def off(guess):
    return float(np.sqrt(((guess - places[path]) ** 2).sum(1)).mean())


mean = np.asarray(share) @ places
print(f"{A.shape[0]} states, {int(A.count)} transitions, log P {value:.2f}")
print(f"cells off: sensor {off(seen):.1f}, best path {off(places[best]):.1f}, mean {off(mean):.1f}")
assert max(off(mean), off(places[best])) < off(seen) / 2

print(f"{STEPS} steps with marginals: {seconds(marginals, A, scores):.2f} s, on a", KIND)

fig, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, t in zip(axes, (STEPS // 4, STEPS - 1), strict=True):
    ax.imshow(np.where(wall, np.nan, np.asarray(share[t]).reshape(wall.shape)), cmap="Blues")
    ax.plot(*places[path[: t + 1]].T[::-1], color="tab:orange", label="the robot's way")
    ax.plot(*seen[: t + 1].T[::-1], ".", color="gray", markersize=3, label="the sensor")
    ax.set(title=f"where it may be at step {t}", xlim=(20, 80), ylim=(80, 20))
axes[0].legend()
plt.show()
