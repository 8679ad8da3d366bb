"""Personalised PageRank: whose company, seen from where, and what would change it.

On the karate club that split in two (Zachary, 1977): 34 members, and 78 pairs who meet outside of
the club. Run: python examples/10_personalised_pagerank.py
"""

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt

import jaxspv as jsp

A = jsp.read_mtx(jsp.bundled("karate")).astype(jnp.float32)
A = A.with_data(jnp.ones(A.nse))
n = A.shape[0]
ranks = jsp.pagerank(A)
ranks

# %% [markdown]
# The two with most rank are the instructor (0) and the president (33), between whom it split.

# %%
print("most rank:", jax.lax.top_k(ranks.scores, 2)[1])
ax = jsp.plot.draw(A, values=ranks.scores, labels=True, node_size=220, seed=3, cmap="Blues")

# %% [markdown]
# ## From one member's place
#
# With `personalization` the walker does not restart anywhere, but at that member. One `vmap` over
# all 34 gives a matrix: row v says who is near v.


# %%
@jax.jit
def from_all(A):
    return jax.vmap(lambda p: jsp.pagerank(A, personalization=p).scores)(jnp.eye(n))


near = from_all(A)
print(near.shape, "rows sum to", near.sum(1).min(), "..", near.sum(1).max())

# %% [markdown]
# ## The split
#
# Who is nearer to the instructor than to the president? That guess is right for all but a few of
# the members, as the club's records say which side each took.

# %%
side = near[0] > near[33]
with_instructor = jnp.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21])
truth = jnp.zeros(n, bool).at[with_instructor].set(True)
print("guessed right:", int((side == truth).sum()), "of", n)
ax = jsp.plot.draw(A, values=side, labels=True, node_size=220, seed=3, cmap="coolwarm")
assert (side == truth).sum() >= 31

# %% [markdown]
# ## Which tie would change it
#
# The gradient of one member's preference by the weight of every tie, by the implicit function
# theorem: nothing of the iteration is stored.


# %%
def preference(data):
    scores = jax.vmap(lambda p: jsp.pagerank(A.with_data(data), personalization=p).scores)
    from_both = scores(jnp.eye(n)[jnp.array([0, 33])])
    return from_both[0, 8] - from_both[1, 8]


slope = jax.grad(preference)(A.data)
row, col = A.rowcol()
for k in jax.lax.top_k(jnp.abs(slope), 3)[1].tolist():
    print(f"tie {int(row[k])} -> {int(col[k])}: {float(slope[k]):+.4f}")

# %% [markdown]
# ## How fast it converges
#
# Each step shrinks the change by the damping factor at least. A small `damping` looks near, and
# is soon done.

# %%
steps = {}
for damping in (0.5, 0.85, 0.95):
    scores = [
        jsp.pagerank(A, damping, tol=0.0, max_iterations=k, personalization=jnp.eye(n)[0]).scores
        for k in range(1, 25)
    ]
    steps[f"damping {damping}"] = [
        float(jnp.abs(b - a).sum()) for a, b in zip(scores, scores[1:], strict=False)
    ]
ax = plt.subplots(layout="constrained")[1]
for name, changes in steps.items():
    ax.semilogy(changes, label=name)
ax.set(xlabel="step", ylabel="L1 change")
ax.legend(frameon=False)
