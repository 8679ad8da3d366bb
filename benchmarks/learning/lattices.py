"""Closures of acyclic graphs against dense scans: a chain CRF, a lattice, sparse transitions.

    python -m benchmarks.learning.lattices [--which lattice sparse chain] [--batch 1 64]
                                           [--of sum gradient entropy expectation best k_best]

Prints least times in ms of the sum over paths (log_plus), its gradient, entropy, expectation, the
edges of the best path (the gradient of max_plus) and 8 best, and how often that goes into the time
of the dense scan. The dense scan computes every transition of a step; the closure those that are
there. Where dense transitions of a batch exceed a GiB on a CPU, or 8 on a GPU, the scan takes fewer
lanes and its time is multiplied. Values are compared before they are timed; the functions take
turns in one process. What an H200 is asked:

    python -m benchmarks.learning.lattices --batch 1 64 --of sum gradient entropy --repeat 20
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

MOST = {"cpu": 1 << 28, "gpu": 1 << 31}  # dense transitions that are held
MISSING = -1e30  # a transition that is not there: JAX's gradients of infinite ones are NaN
SIZES = {"lattice": (101, 500, 2), "sparse": (101, 512, 3)}  # steps, states, arcs of a state


def layered(steps, states, arcs, seed=0, *, onwards=False):
    """A graph of `steps` layers of `states`; each state has `arcs` transitions onwards.

    onwards: to itself and the next states, as in models of speech; otherwise drawn by the seed.
    """
    if onwards:
        each = np.arange(states)[:, None] + np.arange(arcs)
        each = np.broadcast_to(each, (steps - 1, states, arcs))
        to = np.sort(each % states)
    else:
        random = np.random.default_rng(seed)
        each = [random.choice(states, arcs, replace=False) for _ in range((steps - 1) * states)]
        to = np.sort(np.array(each).reshape(steps - 1, states, arcs))
    layer = np.arange(steps - 1)[:, None, None] * states
    source = np.broadcast_to(layer + np.arange(states)[:, None], to.shape)
    n = steps * states
    A = jsp.from_edges(source.ravel(), (layer + states + to).ravel(), shape=(n, n)).trim()
    return A, np.arange(n) < states


def dense_of(A, steps, states):
    """Where each entry of the dense (steps - 1, states, states) transitions is; absent: MISSING."""
    row, col = (np.asarray(v) for v in A.rowcol())
    place = (row // states, row % states, col % states)
    shape = steps - 1, states, states
    return lambda w: jnp.full(shape, MISSING, w.dtype).at[place].set(w)


def by_scan(dense, total=jax.nn.logsumexp):
    """The log sum over all paths through dense (steps, states, states) transitions."""

    def step(x, m):
        return total(x[:, None] + m, axis=0), None

    return total(jax.lax.scan(step, jnp.zeros(dense.shape[1]), dense)[0])


def closing(A, first, last, semiring, lift: Any):
    """`w -> value` of the sum over all paths by `closure`."""
    zero = semiring.add.identity.value if semiring.add.of_tuples else -np.inf
    one = semiring.one.value if semiring.one is not None else 0.0

    def pick(o, z):
        where = first.reshape(-1, *(1,) * np.ndim(o))
        value = np.where(where, o, z)
        return jnp.asarray(value, jnp.float32 if value.dtype.kind == "f" else value.dtype)

    x0 = jax.tree.map(pick, one, zero)

    def total(w):
        x = jsp.closure(A.with_data(lift(w)), semiring, start=x0).x
        return semiring.add.reduce(jax.tree.map(lambda v: v[last], x), 0)

    return total


def timed(functions, args, repeat):
    """The least times in ms of several functions that take turns."""
    taken = {name: [] for name in functions}
    for name, f in functions.items():
        jax.block_until_ready(f(*args[name]))
    for _ in range(repeat):
        for name, f in functions.items():
            start = time.perf_counter()
            jax.block_until_ready(f(*args[name]))
            taken[name].append(1e3 * (time.perf_counter() - start))
    return {name: min(times) for name, times in taken.items()}


def compare(title, graph, sizes, batch, of, repeat):
    (A, first), (steps, states, _) = graph, sizes
    last = np.arange((steps - 1) * states, steps * states)
    w = jax.random.normal(jax.random.key(0), (batch, A.nse))
    most = MOST.get(jax.default_backend(), MOST["cpu"])
    lanes = min(batch, max(most // (steps * states * states), 1))
    dense = jax.jit(jax.vmap(dense_of(A, steps, states)))(w[:lanes])
    s = jsp.semirings
    families = {"entropy": s.entropy(), "expectation": s.expectation(), "k_best": s.k_best(8)}
    lifts: dict[str, Any] = {name: semiring.lift for name, semiring in families.items()}
    lifts["expectation"] = lambda w: (w, w)
    closed, best = (closing(A, first, last, v, lambda w: w) for v in (s.log_plus, s.max_plus))
    scanned = {"sum": by_scan, "gradient": jax.grad(by_scan)}
    scanned["best"] = jax.grad(lambda dense: by_scan(dense, jnp.max))
    ours = {"sum": closed, "gradient": jax.grad(closed), "best": jax.grad(best)}
    for name, semiring in families.items():
        ours[name] = closing(A, first, last, semiring, lifts[name])
    functions = {f"dense scan, {name}": scanned[name] for name in scanned if name in of}
    functions |= {f"closure, {name}": ours[name] for name in of}
    functions = {name: jax.jit(jax.vmap(f)) for name, f in functions.items()}
    args = {name: (dense if "dense" in name else w,) for name in functions}
    want = functions["dense scan, sum"](dense)
    for name in {"sum", "entropy"} & {*of}:
        got = functions[f"closure, {name}"](w)
        np.testing.assert_allclose((got if name == "sum" else got[0])[:lanes], want, 1e-4)
    row, col = (np.asarray(v) for v in A.rowcol())
    place = row // states, row % states, col % states
    for name in {"gradient", "best"} & {*of}:
        theirs = functions[f"dense scan, {name}"](dense[:1])[(0, *place)]
        np.testing.assert_allclose(functions[f"closure, {name}"](w)[0], theirs, 5e-3, 1e-5)
    print(f"{title}: {steps} steps, {states} states, {A.nse} arcs, batch {batch} (dense: {lanes}), "
          f"{jax.devices()[0].device_kind}", flush=True)  # fmt: skip
    least = timed(functions, args, repeat)
    for name, ms in least.items():
        question = name.split(", ")[1]
        scan = least[f"dense scan, {question if question in scanned else 'sum'}"] * batch / lanes
        ms *= batch / lanes if "dense" in name else 1
        print(f"  {name:24s} {ms:11.3f} ms {scan / ms:8.2f}", flush=True)


def main():
    questions = "sum", "gradient", "entropy", "expectation", "best", "k_best"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of the chain")
    parser.add_argument("--states", type=int, default=64, help="of the chain")
    parser.add_argument("--batch", type=int, nargs="+", default=[1])
    parser.add_argument("--which", nargs="+", choices=(*SIZES, "chain"), default=[*SIZES, "chain"])
    parser.add_argument("--of", nargs="+", choices=questions, default=questions)
    parser.add_argument("--repeat", type=int, default=5)
    o = parser.parse_args()
    sizes = SIZES | {"chain": (o.steps, o.states, o.states)}
    of = ["sum", *(v for v in o.of if v != "sum")]
    for title in o.which:
        graph = layered(*sizes[title], onwards=title == "sparse")
        for batch in o.batch:
            compare(title, graph, sizes[title], batch, of, o.repeat)


if __name__ == "__main__":
    main()
