"""The same calls by two trees of this repository: inside jit, eager, a first quarter of an hour.

    python -m benchmarks.compiled.two_trees OTHER [--scale 18] [--runs 60]

OTHER is a folder with another commit (`git archive COMMIT | tar x -C OTHER`); it needs the public
functions alone. Each tree has processes of its own, one after the other, twice. Medians in ms by
the host's clock, of programs under `jsp.config.gpu_compiler_options()` on a GPU; "x + 1" is what
any call takes. On a GPU also "kernels": the sum of a call's kernel times in a profile, which no
other process on the host disturbs.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import runpy
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]


def public(jsp, part, name):
    """A public function: in a submodule, or at the top of the package as it was once."""
    return getattr(getattr(jsp, part, jsp), name, None) or getattr(jsp, name)


def calls(jsp, jax, jnp, scale):
    """name -> (function, operands); eager ones end in "eager"."""
    rmat, attention = public(jsp, "generators", "rmat"), public(jsp, "learning", "attention")
    A = jax.block_until_ready(rmat(jax.random.key(0), scale).asformat("csr"))
    G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank", "mxv"), symmetric=True)
    n, hub = A.shape[0], int(jnp.argmax(jnp.diff(A.indptr)))
    x, X = jnp.ones(n), jnp.ones((n, 64))
    functions = {
        "bfs": lambda G: jsp.bfs(G, hub),
        "sssp": lambda G: jsp.sssp(G, hub),
        "pagerank": lambda G: jsp.pagerank(G),
        "components": lambda G: jsp.connected_components(G),
        "mxv": lambda G: jsp.mxv(G, x),
    }

    def loss(d, product):
        return jnp.sum(product(A.with_data(d)) ** 2)

    rest = {
        "SpMV, bare": (lambda A: A @ x, A),
        "SpMM, 64 columns": (lambda A: A @ X, A),
        "attention": (lambda A: attention(A, X, X, X), A),
        "gradient of SpMV": (jax.grad(lambda d: loss(d, lambda A: A @ x)), A.data),
        "gradient of SpMM": (jax.grad(lambda d: loss(d, lambda A: A @ X)), A.data),
        "gradient of attention": (jax.grad(lambda X: jnp.sum(attention(A, X, X, X))), X),
    }
    gpu_options = public(jsp, "config", "gpu_compiler_options")
    options = gpu_options() if jax.default_backend() == "gpu" else None
    yield "x + 1", jax.jit(lambda x: x + 1), jnp.zeros(())
    for name, fn in functions.items():
        yield name, jax.jit(fn, compiler_options=options), G
        yield f"{name}, eager", fn, G
    for name, (fn, operand) in rest.items():
        yield name, jax.jit(fn, compiler_options=options), operand


def measure(scale: int, runs: int) -> dict[str, float]:
    """Medians in ms by name, of the tree that is imported."""
    import jax
    import jax.numpy as jnp

    import jaxspv as jsp

    found = {}
    timeline = runpy.run_path(str(ROOT / "benchmarks/timeline.py"))["timeline"]  # of this tree
    for name, fn, operand in calls(jsp, jax, jnp, scale):
        for _ in range(3):
            jax.block_until_ready(fn(operand))
        taken = []
        for _ in range(runs):
            start = time.perf_counter()
            jax.block_until_ready(fn(operand))
            taken.append(1e3 * (time.perf_counter() - start))
        found[name] = statistics.median(taken)
        events = timeline(lambda fn=fn, operand=operand: jax.block_until_ready(fn(operand)))
        if events and "eager" not in name:
            found[f"{name}, kernels"] = sum(took for _, _, took in events) / 1e3
    return found


def process(tree: pathlib.Path, *arguments: str) -> str:
    """What a file of this folder prints, with the package of a tree."""
    run = [sys.executable, *arguments]
    where = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.check_output(run, env=where, cwd=tree, text=True)


def main() -> None:
    """Prints a row for each call: both trees, twice; then the first quarters of an hour."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=pathlib.Path)
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--one", action="store_true", help="this process alone, as JSON")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.scale, args.runs)))
        return
    trees = (args.other.resolve(), ROOT)
    how = ("--one", "--scale", str(args.scale), "--runs", str(args.runs))
    found = [
        json.loads(process(tree, __file__, str(args.other), *how).splitlines()[-1])
        for _ in range(2)
        for tree in trees
    ]
    print(f"{'ms':24}" + "".join(f"{t:>10}" for t in ("other", "this", "other", "this")))
    for name in found[0]:
        print(f"{name:24}" + "".join(f"{each[name]:10.3f}" for each in found), flush=True)
    for tree in trees:
        print(f"\n{tree}", process(tree, str(ROOT / "benchmarks/compiled/first_quarter.py")))


if __name__ == "__main__":
    main()
