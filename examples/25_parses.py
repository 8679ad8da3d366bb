"""Parses of sentences: a grammar is a sparse matrix, and a chart is filled over any semiring.

Of two parts next to each other, the pairs of their symbols are the rows of the matrix, and what the
rules make of them its columns. Over log_plus the chart holds the probability of all parses, over
max_plus that of the best; the gradients are the shares of the rules and the best tree itself.
Sums over trees are no sums over paths: `closure` is not for them.
Run: python examples/25_parses.py

Source: Younger, "Recognition and parsing of context-free languages in time n^3", 1967; Goodman,
"Semiring parsing", Computational Linguistics 25 (4), 1999; Eisner, "Inside-outside and
forward-backward algorithms are just backprop", 2016.
"""

# %%
import functools

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxspv as jsp

S = jsp.semirings

# %% [markdown]
# ## A grammar
#
# Symbols make pairs of symbols, or words, each with a probability. Who has the telescope is
# ambiguous.

# %%
RULES = """S NP VP 1.0
VP V NP 0.6
VP VP PP 0.4
NP D N 0.5
NP NP PP 0.3
PP P NP 1.0
"""
WORDS = {
    "NP": {"she": 0.1, "stars": 0.05, "telescopes": 0.05},
    "V": {"saw": 1.0}, "P": {"with": 0.6, "on": 0.4}, "D": {"the": 1.0},
    "N": {"man": 0.4, "hill": 0.3, "telescope": 0.3},
}  # fmt: skip
rules = [(a, b, c, float(p)) for a, b, c, p in (line.split() for line in RULES.splitlines())]
SYMBOLS = sorted({s for rule in rules for s in rule[:3]})
at = {symbol: k for k, symbol in enumerate(SYMBOLS)}
m = len(SYMBOLS)
pair = np.array([at[b] * m + at[c] for _, b, c, _ in rules])
made = np.array([at[a] for a, *_ in rules])
grammar, slots = jsp.from_edges(pair, made, shape=(m * m, m), return_slots=True)
logs = jnp.zeros(len(rules)).at[slots].set(np.log([p for *_, p in rules]))
print(m, "symbols,", len(rules), "rules of", m**3, "that there could be")


def words_of(sentence):
    """(words, symbols) logs."""
    chart = np.full((len(sentence), m), -np.inf, np.float32)
    for k, word in enumerate(sentence):
        for symbol, words in WORDS.items():
            if word in words:
                chart[k, at[symbol]] = np.log(words[word])
    return jnp.asarray(chart)


# %% [markdown]
# ## The chart
#
# All spans of one width are one product: their pairs, added up over the places to split, times the
# matrix of the rules.


# %%
def inside(logs, leaves, semiring):
    """The value of the whole sentence as S, in a semiring of numbers whose product is plus."""
    add, rules = semiring.add, grammar.with_data(logs)
    spans = {1: leaves}  # width -> (places, symbols)
    for width in range(2, len(leaves) + 1):
        places = len(leaves) - width + 1
        parts = [
            spans[left][:places, :, None] + spans[width - left][left : left + places, None, :]
            for left in range(1, width)
        ]
        pairs = add.reduce(jnp.stack(parts).reshape(width - 1, places, m * m), 0)
        spans[width] = jsp.mxm(rules.T, pairs.T, semiring).T
    return spans[len(leaves)][0, at["S"]]


SENTENCE = "she saw the man on the hill with telescopes".split()
leaves = words_of(SENTENCE)
log_p = jax.jit(functools.partial(inside, semiring=S.log_plus))
best = jax.jit(functools.partial(inside, semiring=S.max_plus))


# %% [markdown]
# ## All trees, listed
#
# The oracle lists every tree in Python, and adds up and sorts their probabilities.


# %%
def trees(symbol, i, j):
    """[(probability, tree, rules it uses), ...] of the words i to j."""
    if j - i == 1:
        p = WORDS.get(symbol, {}).get(SENTENCE[i])
        return [(p, SENTENCE[i], ())] if p else []
    found = []
    for k, (a, b, c, p) in enumerate(rules):
        if a == symbol:
            for split in range(i + 1, j):
                for q, left, used in trees(b, i, split):
                    for r, right, more in trees(c, split, j):
                        found.append((p * q * r, (left, right), (k, *used, *more)))
    return found


every = sorted(trees("S", 0, len(SENTENCE)), reverse=True, key=lambda tree: tree[0])
total = sum(p for p, *_ in every)
np.testing.assert_allclose(log_p(logs, leaves), np.log(total), rtol=1e-5)
np.testing.assert_allclose(best(logs, leaves), np.log(every[0][0]), rtol=1e-5)
print(len(every), "trees, log P", round(float(log_p(logs, leaves)), 3))
for p, tree, _ in every[:3]:
    print(f"{p / total:.3f}", str(tree).replace("'", "").replace(",", ""))

# %% [markdown]
# ## Gradients are expected rules
#
# The derivative of log P by the log of a rule is how often it is expected among the trees. That of
# the best tree counts its own rules.

# %%
expected = jax.jit(jax.grad(log_p))(logs, leaves)[slots]
want = np.zeros(len(rules))
for p, _, used in every:
    np.add.at(want, np.array(used), p / total)
np.testing.assert_allclose(expected, want, rtol=1e-4)
chosen = jax.jit(jax.grad(best))(logs, leaves)[slots]
np.testing.assert_allclose(chosen, np.bincount(every[0][2], minlength=len(rules)), atol=1e-5)
for (a, b, c, _), often, once in zip(rules, expected, chosen, strict=True):
    print(f"{a:>3} -> {b} {c:<3} expected {often:.2f}, in the best tree {once:.0f}")

# %% [markdown]
# ## The k best
#
# A vector of k scores for each symbol: two lists of k are joined to the k best sums. This is a
# semiring of tuples; one product by the same matrix serves it.

# %%
K = 4


def largest(values):
    return (jax.lax.top_k(values, K)[0],)


longer = jsp.monoid(
    lambda x, y: largest(jnp.concatenate([x[0], y[0]])),
    (np.full(K, -np.inf, np.float32),),
    check=False,  # lists are sorted; random values, which the check takes, are not
)
best_k = jsp.semiring(longer, lambda x, rule: (x[0] + rule,), name="best_k")


@jax.jit
def k_best(logs, leaves):
    """(K,) the logs of the likeliest parses."""
    fill = jnp.full((*leaves.shape, K - 1), -jnp.inf)
    spans = {1: jnp.concatenate([leaves[..., None], fill], -1)}
    for width in range(2, len(leaves) + 1):
        places = len(leaves) - width + 1
        parts = [
            spans[left][:places, :, None, :, None]
            + spans[width - left][left : left + places, None, :, None, :]
            for left in range(1, width)
        ]
        pairs = jnp.moveaxis(jnp.stack(parts), 0, 3).reshape(places, m * m, -1)
        pairs = largest(pairs)[0]
        step = jax.vmap(lambda x: jsp.vxm((x,), grammar.with_data(logs), best_k)[0])
        spans[width] = step(pairs)
    return spans[len(leaves)][0, at["S"]]


found = jnp.exp(k_best(logs, leaves))
np.testing.assert_allclose(found, [p for p, *_ in every[:K]], rtol=1e-4)
print("the best", K, "have shares", np.round(found / total, 3))

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
names = [f"{a} -> {b} {c}" for a, b, c, _ in rules]
ax.barh(np.arange(len(rules)) - 0.2, expected, 0.4, label="expected")
ax.barh(np.arange(len(rules)) + 0.2, chosen, 0.4, label="in the best tree")
ax.set(yticks=range(len(rules)), yticklabels=names, xlabel="times a rule is used")
ax.legend()
plt.show()
