"""Closures of acyclic graphs against dense scans: a chain CRF, and a lattice with few transitions.

    python -m benchmarks.learning.lattices [--steps 1000] [--states 64] [--batch 1]

Prints least times in ms of the sum over paths (log_plus), its gradient, and of entropy and 8 best,
and how often that goes into the time of the dense scan. The dense scan computes every transition
of a step; the closure those that are there. Where dense transitions of a batch exceed a GiB, the
scan takes fewer lanes and its time is multiplied. Values are compared before they are timed; the
functions take turns in one process.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

MOST = 1 << 28  # dense transitions that are held


def layered(steps, states, arcs, seed=0):
    """A graph of `steps` layers of `states`; each state has `arcs` transitions onwards."""
    random = np.random.default_rng(seed)
    each = [random.choice(states, arcs, replace=False) for _ in range((steps - 1) * states)]
    to = np.sort(np.array(each).reshape(steps - 1, states, arcs))
    layer = np.arange(steps - 1)[:, None, None] * states
    source = np.broadcast_to(layer + np.arange(states)[:, None], to.shape)
    n = steps * states
    A = jsp.from_edges(source.ravel(), (layer + states + to).ravel(), shape=(n, n)).trim()
    return A, np.arange(n) < states


def dense_of(A, steps, states):
    """Where each entry of the dense (steps - 1, states, states) transitions is; absent: -inf."""
    row, col = (np.asarray(v) for v in A.rowcol())
    place = (row // states, row % states, col % states)
    shape = steps - 1, states, states
    return lambda w: jnp.full(shape, -jnp.inf, w.dtype).at[place].set(w)


def by_scan(dense):
    """The log sum over all paths through dense (steps, states, states) transitions."""

    def step(x, m):
        return jax.nn.logsumexp(x[:, None] + m, axis=0), None

    return jax.nn.logsumexp(jax.lax.scan(step, jnp.zeros(dense.shape[1]), dense)[0])


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


def compare(title, steps, states, arcs, batch, repeat):
    A, first = layered(steps, states, arcs)
    last = np.arange((steps - 1) * states, steps * states)
    w = jax.random.normal(jax.random.key(0), (batch, A.nse))
    lanes = min(batch, max(MOST // (steps * states * states), 1))
    dense = jax.jit(jax.vmap(dense_of(A, steps, states)))(w[:lanes])
    s = jsp.semirings
    closed = closing(A, first, last, s.log_plus, lambda w: w)
    families = {"entropy": s.entropy(), "expectation": s.expectation(), "k_best(8)": s.k_best(8)}
    lifts: dict[str, Any] = {name: semiring.lift for name, semiring in families.items()}
    lifts["expectation"] = lambda w: (w, w)
    functions = {
        "dense scan": jax.jit(jax.vmap(by_scan)),
        "closure": jax.jit(jax.vmap(closed)),
        "dense scan, gradient": jax.jit(jax.vmap(jax.grad(by_scan))),
        "closure, gradient": jax.jit(jax.vmap(jax.grad(closed))),
    }
    for name, semiring in families.items():
        functions[name] = jax.jit(jax.vmap(closing(A, first, last, semiring, lifts[name])))
    args = {name: (dense if "dense" in name else w,) for name in functions}
    want, got = functions["dense scan"](dense), functions["closure"](w)[:lanes]
    np.testing.assert_allclose(got, want, 1e-4)
    np.testing.assert_allclose(functions["entropy"](w)[0][:lanes], want, 1e-4)
    print(f"{title}: {steps} steps, {states} states, {A.nse} arcs, batch {batch} (dense: {lanes}), "
          f"{jax.devices()[0].device_kind}", flush=True)  # fmt: skip
    least = timed(functions, args, repeat)
    for name, ms in least.items():
        ms *= batch / lanes if "dense" in name else 1
        scan = least["dense scan, gradient" if "gradient" in name else "dense scan"]
        print(f"  {name:24s} {ms:11.3f} ms {scan * batch / lanes / ms:8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--states", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--which", choices=("both", "lattice", "chain"), default="both")
    parser.add_argument("--repeat", type=int, default=5)
    o = parser.parse_args()
    if o.which != "chain":
        compare("lattice", 101, 500, 2, o.batch, o.repeat)
    if o.which != "lattice":
        compare("chain", o.steps, o.states, o.states, o.batch, o.repeat)


if __name__ == "__main__":
    main()
