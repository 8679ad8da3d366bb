"""A hidden Markov model over a sparse lattice: marginals are gradients of the partition function.

Over the semiring (logaddexp, +) a step of the forward algorithm is one sparse product, and the
derivative of log Z by the score of a state at a time is the probability that the model is there.
Run: python examples/05_hidden_markov_lattice.py

Source: Eisner, "Inside-outside and forward-backward algorithms are just backprop", 2016.
"""

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

import jaxspv as jsp

# %% [markdown]
# ## The lattice
#
# Forty places in a row; from each the walker may move at most two places. The pattern is sparse,
# and stays sparse when the probabilities are trained.

# %%
STATES, STEPS, REACH = 40, 60, 2
log_plus = jsp.semirings.log_plus

here, there = np.array(
    [(i, j) for i in range(STATES) for j in range(STATES) if abs(i - j) <= REACH]
).T
lattice = jsp.from_edges(here, there, shape=(STATES, STATES)).astype(jnp.float32)


def normalised(weights):
    """Log-probabilities: every row of the transition matrix sums to 1."""
    A = lattice.with_data(weights)
    total = jsp.mxv(A, jnp.zeros(STATES), log_plus)
    return A.with_data(weights - total[A.rowcol()[0]])


def log_partition(weights, scores):
    """log of the sum over all paths of exp(transitions + scores); scores (STEPS, STATES)."""
    A = normalised(weights)

    def step(alpha, score):
        return jsp.vxm(alpha, A, log_plus) + score, None

    start = scores[0] - jnp.log(STATES)
    return jax.nn.logsumexp(jax.lax.scan(step, start, scores[1:])[0])


# %% [markdown]
# ## What is seen
#
# A walker drifts to the right; what is seen is its place and noise.

# %%
rng = np.random.default_rng(0)
walk = np.minimum(np.cumsum(rng.choice([0, 1, 1, 2], STEPS)) // 2, STATES - 1)
seen = walk + rng.normal(0, 1.5, STEPS)
scores = jnp.asarray(-((seen[:, None] - np.arange(STATES)) ** 2) / (2 * 1.5**2), jnp.float32)

# %% [markdown]
# ## Marginals are a gradient
#
# No backward pass is written: `jax.grad` of log Z by the scores is the probability of every state
# at every time.

# %%
weights = jnp.zeros(lattice.nse)
marginals = jax.jit(jax.grad(log_partition, 1))(weights, scores)
np.testing.assert_allclose(marginals.sum(1), 1, rtol=1e-4)  # the walker is somewhere

ax = plt.subplots(layout="constrained")[1]
ax.imshow(marginals.T, origin="lower", aspect="auto", cmap="Blues")
ax.plot(walk, color="tab:orange", linewidth=1.5, label="where it was")
ax.plot(seen, ".", color="gray", label="what was seen")
ax.set(xlabel="time", ylabel="place")
ax.legend(frameon=False)

# %% [markdown]
# The textbook's forward and backward passes on dense matrices, in float64, agree:

# %%
P = np.zeros((STATES, STATES))
P[here, there] = 1
P /= P.sum(1, keepdims=True)
E = np.exp(np.asarray(scores, np.float64))
forward, backward = [E[0] / STATES], [np.ones(STATES)]
for t in range(1, STEPS):
    forward.append(E[t] * (forward[-1] @ P))
    backward.append(P @ (E[STEPS - t] * backward[-1]))
textbook = np.array(forward) * np.array(backward[::-1])
np.testing.assert_allclose(marginals, textbook / textbook.sum(1, keepdims=True), atol=1e-4)

# %% [markdown]
# ## Training the transitions
#
# The same gradient, by the transitions, fits them to what was seen.

# %%
rule = optax.adam(0.1)


@jax.jit
def fit(weights, state):
    value, slope = jax.value_and_grad(lambda w: -log_partition(w, scores))(weights)
    move, state = rule.update(slope, state)
    return optax.apply_updates(weights, move), state, value


state, first = rule.init(weights), None
for _ in range(80):
    weights, state, value = fit(weights, state)
    first = float(value) if first is None else first
P = normalised(weights)
row, col = P.rowcol()
drift = float(jnp.sum(jnp.exp(P.data) * (col - row) * marginals.sum(0)[row]) / STEPS)
print(f"-log likelihood {first:.1f} before, {float(value):.1f} after; drift {drift:.2f} a step")
assert value < first - 5 and drift > 0.1
