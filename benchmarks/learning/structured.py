"""Chains and lattices by `closure` and by programs of others: equal values, least times.

    python -m benchmarks.learning.structured [--torch-struct PYTHON] [--k2 PYTHON] [--batch 1]

Each PYTHON is an interpreter that has this library. It answers in a process of its own, before ours
is timed, on one thread. torch-struct takes a dense chain: its scan multiplies matrices of a
semiring, and for the k best a pair of steps holds states^3 k^2 numbers; hence the size. k2 takes a
lattice of 10^5 arcs. On a GPU ours run there, theirs on the host.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from .lattices import closing, dense_of, layered, timed

K = 8
CHAIN = 200, 32, 32  # steps, states, arcs a state
LATTICE = 101, 500, 2
BOUND = {"rtol": 1e-3, "atol": 1e-5}


def questions(A, first, last):
    """`name -> f(weights)`."""
    s = jsp.semirings
    families = s.entropy(), s.k_best(K)
    total = closing(A, first, last, s.log_plus, lambda w: w)
    entropy, best = (closing(A, first, last, family, family.lift) for family in families)
    return {
        "sum over paths": total,
        "gradient": jax.grad(total),
        "entropy": lambda w: entropy(w)[1],
        "best paths": lambda w: -best(-w)[0],
        "best path": closing(A, first, last, s.max_plus, lambda w: w),
    }


def answers(python: str, peer: str, repeat: int, **inputs):
    """What another library finds, and its times."""
    script = pathlib.Path(__file__).with_name(f"with_{peer}.py")
    with tempfile.TemporaryDirectory() as folder:
        given, found = (f"{folder}/{name}.npz" for name in ("given", "found"))
        np.savez(given, **inputs)
        subprocess.run([python, script, given, found, str(repeat)], check=True)
        return dict(np.load(found))


def compare(python: str, peer: str, sizes: tuple[int, int, int], batch: int, repeat: int):
    """Prints a line a question."""
    steps, states, arcs = sizes
    A, first = layered(*sizes)
    last = np.arange((steps - 1) * states, steps * states)
    w = jax.random.normal(jax.random.key(0), (batch, A.nse), jnp.float32)
    row, col = (np.asarray(v) for v in A.rowcol())
    inputs = {"row": row, "col": col, "weights": w, "first": np.flatnonzero(first), "last": last}
    if peer == "torch_struct":
        inputs = {"dense": jax.vmap(dense_of(A, steps, states))(w), "k": K}
    theirs = answers(python, peer, repeat, **inputs)
    print(
        f"{steps} steps, {states} states, {A.nse} arcs, batch {batch}, "
        f"{jax.devices()[0].device_kind}"
    )
    for name, f in questions(A, first, last).items():
        if name not in theirs:
            continue
        call, want = jax.jit(jax.vmap(f)), theirs[name]
        np.testing.assert_allclose(call(w).ravel(), want.ravel(), **BOUND, err_msg=name)
        ms, other = timed({name: call}, {name: (w,)}, repeat)[name], float(theirs[f"{name}, ms"])
        print(f"  {name:16s} {ms:9.3f} ms, {peer} {other:9.3f} ms, {other / ms:6.2f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-struct")
    parser.add_argument("--k2")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=10)
    o = parser.parse_args()
    if o.torch_struct:
        compare(o.torch_struct, "torch_struct", CHAIN, o.batch, o.repeat)
    if o.k2:
        compare(o.k2, "k2", LATTICE, o.batch, o.repeat)


if __name__ == "__main__":
    main()
