"""Processor time to trace, to lower and to compile the public functions that are used most, in ms.

    python -m benchmarks.dev.tracing [NAME ...]

Each function in a process of its own on the bundled road network of Minnesota, jitted, lowered for
the default device. With `PYTHONPATH` at another commit the same file measures that one.
"""

import json
import math
import subprocess
import sys

CALLS = {
    "bfs": "lambda G: jsp.bfs(G, 0)",
    "bfs from 32": "lambda G: jsp.bfs(G, jnp.arange(32))",
    "sssp": "lambda G: jsp.sssp(G, 0)",
    "gradient of sssp": "lambda A: jax.grad(lambda d: far(A.with_data(d)))(A.data)",
    "pagerank": "lambda G: jsp.pagerank(G)",
    "connected_components": "lambda A: jsp.connected_components(A)",
    "strongly_connected_components": "lambda A: jsp.strongly_connected_components(A)",
    "triangle_count": "lambda A: jsp.triangle_count(A)",
    "core_number": "lambda A: jsp.core_number(A)",
    "louvain": "lambda A: jsp.louvain(A)",
    "betweenness_centrality": "lambda A: jsp.betweenness_centrality(A, jnp.arange(8))",
    "fixpoint": "lambda A: jsp.fixpoint(A, x, 'min_plus', monotone=True)",
    "A @ x": "lambda A: A @ x",
    "gradient of A @ x": "lambda A: jax.grad(lambda d: (A.with_data(d) @ x).sum())(A.data)",
    "vxm of a sparse vector": "lambda A: jsp.vxm(v, A)",
    "A @ X": "lambda A: A @ X",
    "mxm": "lambda A: jsp.mxm(A, A, nse=40_000)",
    "A + A.T": "lambda A: A + A.T",
    "sddmm": "lambda A: jsp.sddmm(A, X, X)",
    "attention": "lambda A: jsp.learning.attention(A, X, X, X)",
}

ONE = """
import json, sys, time
import jax, jax.numpy as jnp
import jaxspv as jsp
A = jsp.read_mtx(jsp.bundled("minnesota"))
G = A
n = A.shape[0]
x, X = jnp.ones(n), jnp.ones((n, 8))
v = jsp.vector_from_entries([1, 5], [1.0, 2.0], n)
def far(A):
    d = jsp.sssp(A, 0).distances
    return jnp.where(d < jnp.inf, d, 0).sum()
fn = eval(sys.argv[1])
clock = [time.process_time()]
traced = jax.jit(fn).trace(A); clock.append(time.process_time())
lowered = traced.lower(); clock.append(time.process_time())
lowered.compile(); clock.append(time.process_time())
print(json.dumps([1e3 * (b - a) for a, b in zip(clock, clock[1:])]))
"""


def main(names: list[str]) -> None:
    """Prints a row for each function, and the geometric means."""
    logs = [0.0, 0.0, 0.0, 0.0]
    chosen = {name: CALLS[name] for name in names or CALLS}
    print(f"{'function':32} {'trace':>8} {'lower':>8} {'compile':>8} {'all':>8}  ms")
    for name, call in chosen.items():
        run = [sys.executable, "-c", ONE, call]
        out = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        times = json.loads(out.splitlines()[-1])
        times.append(sum(times))
        print(f"{name:32} " + " ".join(f"{t:8.1f}" for t in times), flush=True)
        logs = [a + math.log(t) for a, t in zip(logs, times, strict=True)]
    means = [math.exp(a / len(chosen)) for a in logs]
    print(f"{'geometric mean':32} " + " ".join(f"{t:8.1f}" for t in means))


if __name__ == "__main__":
    main(sys.argv[1:])
