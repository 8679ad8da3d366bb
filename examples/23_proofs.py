"""Reachability with proofs: which facts support a conclusion, and how its probability follows them.

A Datalog program of two rules over uncertain facts, `path(x, y) :- edge(x, y)` and
`path(x, z) :- path(x, y), edge(y, z)`, is a closure. Over booleans it says what follows, over
top_k_proofs by which sets of facts, and the gradient which fact matters most.
Run: python examples/23_proofs.py

Source: Green, Karvounarakis and Tannen, "Provenance semirings", PODS 2007; Huang et al., "Scallop:
from probabilistic deductive databases to scalable differentiable reasoning", NeurIPS 2021.
"""

# %%
import itertools

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import jaxspv as jsp

S = jsp.semirings

# %% [markdown]
# ## Facts
#
# One-way roads between nine towns, each open with a probability. Edges may share a fact:
# the bridges (3, 4) and (7, 8) are closed together in a flood.

# %%
ROADS = [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (3, 6), (4, 5), (4, 7), (5, 8), (6, 7),
         (7, 8)]  # fmt: skip
FLOOD = {(7, 8): (3, 4)}
facts = [road for road in ROADS if road not in FLOOD]
fact = np.array([facts.index(FLOOD.get(road, road)) for road in ROADS])
source, target = np.array(ROADS).T
TOWNS, HOME, GOAL = 9, 0, 8
G = jsp.from_edges(source, target, shape=(TOWNS, TOWNS)).trim()
chances = jnp.asarray(np.random.default_rng(4).uniform(0.4, 0.95, len(facts)), jnp.float32)
print(len(facts), "facts,", len(source), "edges")

# %% [markdown]
# ## What follows, and how surely
#
# Over or_and the closure is plain Datalog; over max_times the probability of the best proof.

# %%
follows = jsp.closure(G.with_data(jnp.ones(G.nse, bool)), S.or_and, start=HOME).x
assert set(np.flatnonzero(follows)) == nx.descendants(nx.DiGraph(ROADS), HOME) | {HOME}
best = jsp.closure(G.with_data(chances[fact]), S.max_times, start=HOME).x
print("best single proof of the goal:", round(float(best[GOAL]), 4))

# %% [markdown]
# ## Proofs
#
# A value of top_k_proofs holds the k likeliest sets of facts. A set holds each fact once, however
# often a path rests on it, so that sums over cycles end as well. There a detour over more facts is
# a proof too, and takes a place among the k; what contains another proof is left out below.


# %%
def proofs(chances, k):
    """(k,) logs of the likeliest proofs of the goal, and (k, words) the bits of their facts."""
    logs = jnp.log(chances)
    s = S.top_k_proofs(k, logs)
    lifted = s.lift(jnp.asarray(fact, jnp.int32), logs)
    return jax.tree.map(lambda v: v[GOAL], jsp.closure(G.with_data(lifted), s, start=HOME).x)


def sets_of(chances, k):
    """(proofs, facts) bool: the proofs of which none contains another."""
    logs, bits = (np.asarray(v) for v in proofs(chances, k))
    sets = ((bits[:, 0, None] >> np.arange(len(facts))) & 1).astype(bool)[np.isfinite(logs)]
    within = [(other <= own).all() and (other != own).any() for own in sets for other in sets]
    return sets[~np.reshape(within, (len(sets), -1)).any(1)]


found = sets_of(chances, 16)
for own in found:
    print(f"{chances[own].prod():.3f}", *(f"{a}-{b}" for a, b in np.array(facts)[own]))

# %% [markdown]
# The oracle walks: NetworkX lists the simple paths, and each is the set of its facts. A path that
# goes over two bridges of one fact is as likely as if it went over one.

# %%
number = dict(zip(ROADS, fact.tolist(), strict=True))
walks = nx.all_simple_paths(nx.DiGraph(ROADS), HOME, GOAL)
simple = {frozenset(number[e] for e in itertools.pairwise(walk)) for walk in walks}
least = {own for own in simple if not any(other < own for other in simple)}
assert {frozenset(np.flatnonzero(own)) for own in found} == least
np.testing.assert_allclose(best[GOAL], max(chances[np.array([*f])].prod() for f in least), 1e-5)
marked = jax.grad(lambda p: proofs(p, 4)[0][0])(chances) * chances
assert np.allclose(marked, found[0])  # the derivative by a log is one for the facts that it uses

# %% [markdown]
# ## The probability of a conclusion
#
# It holds where all facts of some proof hold. Proofs share facts, so that their probabilities do
# not add up: the union is summed by inclusion and exclusion over the few proofs that are kept. The
# oracle asks NetworkX in each of the 2^11 worlds.


# %%
def union(chances, sets):
    """P(the facts of at least one set hold)."""
    chosen = np.array(list(itertools.product([False, True], repeat=len(sets))))[1:]
    needed = (chosen[:, :, None] & sets).any(1)
    return (-((-1.0) ** chosen.sum(1)) * jnp.where(needed, chances, 1).prod(1)).sum()


worlds = np.array(list(itertools.product([0, 1], repeat=len(facts))))
true = []
for world in worlds:
    town = nx.DiGraph([road for road, f in zip(ROADS, fact, strict=True) if world[f]])
    true.append(town.has_node(HOME) and town.has_node(GOAL) and nx.has_path(town, HOME, GOAL))
true, p = np.array(true), np.asarray(chances, float)
weight = np.where(worlds, p, 1 - p).prod(1)
exact = weight[true].sum()
exact_slope = [(np.where(worlds[:, f], 1 / p[f], -1 / (1 - p[f])) * weight)[true].sum()
               for f in range(len(facts))]  # fmt: skip

kept, bounds = (1, 2, 4, 8, 16), []
for k in kept:
    sets = sets_of(chances, k)
    value, slope = jax.value_and_grad(union)(chances, sets)
    bounds.append(float(value))
    print(f"k = {k:2d}: {len(sets)} proofs, P = {value:.4f}")
print(f"all worlds: P = {exact:.4f}")
assert np.all(np.diff(bounds) >= -1e-6) and bounds[-1] <= exact + 1e-5  # from below
assert np.isclose(bounds[-1], exact, atol=1e-4) and np.allclose(slope, exact_slope, atol=1e-3)
order = np.argsort(-slope)
print("mend first:", ", ".join(f"{facts[f]} (+{slope[f]:.2f})" for f in order[:3]))

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].axhline(exact, color="gray", label="all worlds")
axes[0].plot(kept, bounds, "o-", label="the k likeliest proofs")
axes[0].set(xscale="log", xticks=kept, xticklabels=kept, xlabel="k", ylabel="probability")
axes[0].legend()
axes[1].bar([f"{a}-{b}" for a, b in np.array(facts)[order]], slope[order])
axes[1].plot(np.asarray(exact_slope)[order], "k.", label="all worlds")
axes[1].set(xlabel="fact", title="derivative of the goal's probability")
axes[1].legend()
plt.show()
