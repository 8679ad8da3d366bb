"""Learnt edit distance: which misspellings are likely, from pairs of words.

A transducer of two states writes one word for another by substitutions, deletions and insertions.
Composed with a word on each side it is the graph of all their alignments. The gradient of the log
of the sum over its paths counts the expected edits, and a step of EM divides them by their sum.
Run: python examples/21_learnt_edit_distance.py

Source: Ristad and Yianilos, "Learning string-edit distance", 1998; Mohri, "Edit-distance of
weighted automata", 2003.
"""

# %%
import string

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxspv as jsp

S, automata = jsp.semirings, jsp.automata

# %% [markdown]
# ## Misspelt words
#
# A hasty writer takes n for m and p for b, forgets h, and doubles l. The pairs are all that the
# program sees.

# %%
WORDS = """number remember chamber comb thumb bomb plumber humble symbol member ember amber tumble
hello yellow color vehicle rhythm ghost honest school chorus echo anchor machine mechanic
problem bubble ribbon rabbit cabin robin habit bamboo banana panda beaver pepper paper apple
mammal common hammer summer manner moment nothing month mountain animal mineral
whale while wheel helmet harbor hollow shallow shelf ladle label noble cable people purple"""
WORDS = sorted(WORDS.split())
ALPHABET = string.ascii_lowercase
NUMBER = {character: 1 + k for k, character in enumerate(ALPHABET)}
rng = np.random.default_rng(0)


def misspelt(word):
    written = ""
    for character in word:
        if character == "h" and rng.random() < 0.6:
            continue
        other = {"m": "n", "b": "p"}.get(character)
        written += other if other and rng.random() < 0.5 else character
        if character == "l" and rng.random() < 0.4:
            written += "l"
        elif rng.random() < 0.05:
            written += ALPHABET[rng.integers(26)]
    return written


pairs = [(word, misspelt(word)) for word in WORDS for _ in range(3)]
print(len(pairs), "pairs, as", pairs[3:60:12])

# %% [markdown]
# ## The transducer
#
# Labels are 1 to 26, and 0 for nothing. Each pair of them but (0, 0) is an edit: a character for a
# character, for nothing, or out of nothing; the last edge stops. Labels from 27 on number
# the pairs of words: each word begins with its number, which is copied, so that all pairs are one
# graph and one call.

# %%
one, other = (v.ravel() for v in np.meshgrid(*2 * [np.arange(27)], indexing="ij"))
one, other = (v[1:] for v in (one, other))  # without 0 for 0, which stops
EDITS = one.size + 1


def transducer(count):
    tags = 27 + np.arange(count)
    source = np.zeros(EDITS + count, int)
    target = np.where(np.arange(EDITS + count) == EDITS - 1, 1, 0)
    read, written = (np.concatenate([v, [0], tags]) for v in (one, other))
    return automata.automaton(source, target, read, written, final=1)


def written_in_a_row(words):
    """The words as paths from state 0, each with its number in front."""
    source, target, label, final, last = [], [], [], [], 0
    for k, word in enumerate(words):
        characters = [27 + k, *(NUMBER[character] for character in word)]
        states = last + 1 + np.arange(len(characters))
        source += [0, *states[:-1]]
        target, label, last = [*target, *states], label + characters, int(states[-1])
        final.append(last)
    return automata.automaton(source, target, label, final=final)


def alignments(pairs, costs, semiring):
    """The automaton of all alignments, given the costs or logs of the edits, (EDITS,)."""
    first, second = (written_in_a_row(words) for words in zip(*pairs, strict=True))
    T = transducer(len(pairs))
    T = T.with_data(jnp.append(costs, jnp.zeros(len(pairs))))
    return automata.compose(automata.compose(first, T, semiring), second, semiring)


# %% [markdown]
# ## Levenshtein's distance first
#
# With one for each edit and zero for a copy the shortest path is the edit distance. A table filled
# row by row in NumPy says the same of every pair, of the least cost and of the sum.


# %%
def table(x, y, costs, add, zero):
    """The sum over all alignments; costs (27, 27), `costs[0, 0]` to stop."""
    found = np.full((len(x) + 1, len(y) + 1), zero)
    found[0, 0] = 0
    x, y = ([NUMBER[character] for character in word] for word in (x, y))
    for i in range(len(x) + 1):
        for j in range(len(y) + 1):
            if i:
                found[i, j] = add(found[i, j], found[i - 1, j] + costs[x[i - 1], 0])
            if j:
                found[i, j] = add(found[i, j], found[i, j - 1] + costs[0, y[j - 1]])
            if i and j:
                found[i, j] = add(found[i, j], found[i - 1, j - 1] + costs[x[i - 1], y[j - 1]])
    return found[-1, -1] + costs[0, 0]


def in_a_table(costs):
    return np.insert(np.asarray(costs)[:-1], 0, costs[-1]).reshape(27, 27)


def of_each(C, semiring):
    """The sum of each pair, in their order: what arrives in its final state."""
    x = jsp.closure(C.matrix(semiring), semiring, start=C.start).x[C.final]
    number = C.with_data(jnp.maximum(jnp.asarray(C.input, jnp.float32) - 27, 0))
    at = jsp.closure(number.matrix(S.max_plus), S.max_plus, start=C.start).x[C.final]
    return x[np.argsort(at)]


unit = jnp.append(jnp.asarray(one != other, jnp.float32), 0.0)
C = alignments(pairs, unit, "min_plus")
distance = of_each(C, S.min_plus)
assert list(distance) == [table(x, y, in_a_table(unit), min, np.inf) for x, y in pairs]
print(C, "in all;", f"edits: {int(distance.sum())} in {sum(len(x) for x, _ in pairs)} characters")

# %% [markdown]
# ## Learning by the gradient
#
# With the logs of probabilities, the derivative of the log of the sum by an edit's log is how often
# it is expected. The pattern is captured: one compiled function of the logs alone.


# %%
@jax.jit
def log_likelihood(logs):
    C = alignments(pairs, logs, "log_plus")
    return jsp.closure(C.matrix("log_plus"), "log_plus", start=C.start).x[C.final].sum()


counted = jax.jit(jax.value_and_grad(log_likelihood))
logs = jnp.log(jnp.where(one == other, 1.0, 0.05))
logs = jax.nn.log_softmax(jnp.append(logs, 0.0))
found = []
for _ in range(25):
    value, counts = counted(logs)
    found.append(float(value))
    logs = jnp.log((counts + 1e-4) / (counts + 1e-4).sum())
assert np.all(np.diff(found) > -0.1)  # EM never goes down
assert np.isclose(counts[-1], len(pairs), rtol=1e-4)  # each pair stops once
want = sum(table(x, y, in_a_table(logs), np.logaddexp, -np.inf) for x, y in pairs)
assert np.isclose(float(log_likelihood(logs)), want, rtol=1e-4)
print(f"log-likelihood of a pair: {found[0] / len(pairs):.2f} -> {found[-1] / len(pairs):.2f}")
share = np.exp(in_a_table(logs))
share /= share.sum(1, keepdims=True)
for a, b in ("mn", "bp", "h ", "mm"):
    print(f"{a} -> {b if b != ' ' else 'nothing'}: {share[NUMBER[a], NUMBER.get(b, 0)]:.2f}")

# %% [markdown]
# ## Which word was meant
#
# New misspellings against every word of the list, by unit costs and by those learnt: one
# composition of all pairs, two vectors of costs.

# %%
meant = [WORDS[k] for k in rng.integers(len(WORDS), size=40)]
asked = [(word, query) for query in map(misspelt, meant) for word in WORDS]


def nearest(costs):
    cost = of_each(alignments(asked, costs, "min_plus"), S.min_plus).reshape(len(meant), -1)
    rank = (cost <= cost[np.arange(len(meant)), [WORDS.index(w) for w in meant], None]).sum(1)
    return float((rank == 1).mean())


right = {"unit costs": nearest(unit), "learnt costs": nearest(-logs)}
print("alone in the first place:", {name: round(value, 3) for name, value in right.items()})
assert right["learnt costs"] > right["unit costs"]

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].imshow(share[1:], cmap="Blues", vmax=0.6)
axes[0].set(xticks=range(27), xticklabels=["-", *ALPHABET], yticks=range(26), yticklabels=ALPHABET)
axes[0].set(xlabel="written", ylabel="meant", title="learnt edits of a character")
axes[1].plot(found)
axes[1].set(xlabel="step of EM", ylabel="log-likelihood")
plt.show()
