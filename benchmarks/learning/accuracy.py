"""The network of the example of graph attention beside PyG's on the same split: what is learnt.

Task, sizes and steps are those of examples/15_graph_attention_nnx.py: of a graph without labels the
communities that `louvain` finds are to be told, a few vertices of each are known, and features are
where a vertex links to, in random directions. For every seed both networks get the same features,
labels and known vertices; each starts from its library's usual random weights. The accuracy is that
on the vertices that are not known. Times are those of training, compilation included in the first.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

from .. import suite
from ..harness import alone, summary, timed
from ..options import Options
from ..products.gnn import has_pyg

GRAPHS = ("karate", "cit-HepPh")
HEADS, FEATURES, INPUTS, KNOWN, STEPS = 4, 8, 32, 16, 30
RATE, DECAY, LEAKY = 0.02, 0.001, 0.2
CORE = 28  # of large graphs this core alone
SMALL = 1_000  # vertices of a graph that is taken whole


class Task(NamedTuple):
    """What one seed asks.

    Attributes:
        links: symmetric, with self loops, each 1.
        x: (n, INPUTS) float32 features.
        label, known: (n,) the class of each vertex, and whether it is told.
        classes: how many there are.
    """

    links: sp.csr_array
    x: np.ndarray
    label: np.ndarray
    known: np.ndarray
    classes: int


def workloads() -> list[suite.Workload]:
    """Those of the example that are at hand."""
    return [suite.get(name) for name in GRAPHS if suite.exists(name)]


def run(workload: suite.Workload, options: Options) -> list[dict[str, Any]]:
    """A record for each library: the mean accuracy over `runs` seeds and its deviation."""
    links = _dense_part(workload.symmetrised().matrix())
    label = np.unique(np.asarray(jsp.louvain(links).labels), return_inverse=True)[1]
    programs = {"jaxspv": train}
    if options.baselines and has_pyg():
        programs["PyG"] = train_pyg
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for seed in range(options.runs):
        given = task(links, label, seed)
        for name, program in programs.items():
            with alone():
                answer, seconds = timed(functools.partial(program, given, seed))
            right = (answer == given.label)[~given.known]
            found[name].append((float(right.mean()), seconds))
    records = []
    for name, results in found.items():
        accuracy, seconds = (np.asarray(v) for v in zip(*results, strict=True))
        record = summary(name, seconds[1:] if len(seconds) > 1 else seconds, seconds[0])
        record |= {"accuracy": float(accuracy.mean()), "deviation": float(accuracy.std())}
        record |= {"n": links.shape[0], "entries": links.nnz, "seeds": options.runs}
        records.append(record | {"case": f"{workload.name}, {label.max() + 1} communities"})
    return records


def _dense_part(S: sp.csr_array) -> sp.csr_array:
    if S.shape[0] <= SMALL:
        return S
    inside = np.asarray(jsp.core_number(jsp.from_scipy(S)).cores) >= CORE
    return sp.csr_array(S[inside][:, inside])


def task(links: sp.csr_array, label: np.ndarray, seed: int) -> Task:
    """Features in random directions and the known vertices, drawn anew for each seed."""
    rng, n = np.random.default_rng(seed), links.shape[0]
    size = np.bincount(label)
    order = rng.permutation(n)
    rank = np.empty(n, int)
    for c in range(len(size)):
        mine = order[label[order] == c]
        rank[mine] = np.arange(1, len(mine) + 1)
    known = rank <= np.minimum(KNOWN, size[label] // 2)
    shares = sp.diags_array(1 / np.maximum(links.sum(axis=1), 1)) @ links
    x = np.asarray(shares @ rng.standard_normal((n, INPUTS)) * 4, np.float32)
    looped = sp.csr_array(links + sp.eye_array(n), dtype=np.float32)
    looped.sort_indices()
    return Task(looped, x, label, known, len(size))


# ---- jaxspv ----


def _layer(A: Any, x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    h = jnp.einsum("ni,iho->nho", x, p["project"])
    q, k = jnp.sum(h * p["ask"], -1), jnp.sum(h * p["answer"], -1)
    return jsp.learning.attention(A, q, k, h, score=lambda q, k: jax.nn.leaky_relu(q + k, LEAKY))


def network(A: Any, x: jax.Array, params: Any) -> jax.Array:
    """(n, classes): the heads of the first layer side by side, those of the second averaged."""
    h = jax.nn.elu(_layer(A, x, params[0])).reshape(x.shape[0], -1)
    return _layer(A, h, params[1]).mean(axis=1)


def _start(key: jax.Array, inputs: int, outputs: int) -> dict[str, jax.Array]:
    normal = jax.nn.initializers.lecun_normal()
    wide = jax.nn.initializers.lecun_normal(in_axis=0, out_axis=(1, 2))
    keys = jax.random.split(key, 3)
    shapes = {"project": (inputs, HEADS, outputs), "ask": (HEADS, outputs)}
    shapes["answer"] = shapes["ask"]
    rules = (wide, normal, normal)
    return {
        name: rule(k, shape)
        for rule, k, (name, shape) in zip(rules, keys, shapes.items(), strict=True)
    }


def train(given: Task, seed: int) -> np.ndarray:
    """(n,) the classes that the network of jaxspv tells."""
    keys = jax.random.split(jax.random.key(seed))
    params = [
        _start(keys[0], given.x.shape[1], FEATURES),
        _start(keys[1], HEADS * FEATURES, given.classes),
    ]
    A = jsp.from_scipy(given.links)
    return np.asarray(_trained(params, A, *map(jnp.asarray, given[1:4])))


@jax.jit
def _trained(params, A, x, label, known):
    import optax

    rule = optax.adamw(RATE, weight_decay=DECAY)

    def loss(params):
        each = optax.softmax_cross_entropy_with_integer_labels(network(A, x, params), label)
        return jnp.sum(jnp.where(known, each, 0)) / jnp.sum(known)

    def step(state, _):
        params, memory = state
        gradients, memory = rule.update(jax.grad(loss)(params), memory, params)
        return (optax.apply_updates(params, gradients), memory), None

    (params, _), _ = jax.lax.scan(step, (params, rule.init(params)), None, STEPS)
    return network(A, x, params).argmax(axis=1)


# ---- PyG ----


def train_pyg(given: Task, seed: int) -> np.ndarray:
    """(n,) the classes that the same network of PyG's layers tells."""
    import torch
    from torch_geometric.nn import GATConv

    torch.manual_seed(seed)
    how = {"heads": HEADS, "bias": False, "add_self_loops": False, "negative_slope": LEAKY}
    first = GATConv(given.x.shape[1], FEATURES, **how).cuda()
    second = GATConv(HEADS * FEATURES, given.classes, concat=False, **how).cuda()
    row = np.repeat(np.arange(given.links.shape[0]), np.diff(given.links.indptr))
    edges = torch.from_numpy(np.stack([given.links.indices.astype(np.int64), row])).cuda()
    x, label = torch.from_numpy(given.x).cuda(), torch.from_numpy(given.label).cuda()
    known = torch.from_numpy(given.known).cuda()
    params = [*first.parameters(), *second.parameters()]
    rule = torch.optim.AdamW(params, lr=RATE, weight_decay=DECAY)

    def network():
        return second(torch.nn.functional.elu(first(x, edges)), edges)

    for _ in range(STEPS):
        rule.zero_grad()
        torch.nn.functional.cross_entropy(network()[known], label[known]).backward()
        rule.step()
    with torch.no_grad():
        return network().argmax(dim=1).cpu().numpy()
