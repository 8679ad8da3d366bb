"""What an eager call costs beyond the same call inside jit, and of what: any device, a minute.

    python -m benchmarks.dev.eager_calls [--scale 18] [--runs 40] [--only bfs sssp]

Of each algorithm on a prepared and on a bare rmat graph, milliseconds, medians, all ways in turn:

    eager      the call, waited for
    host       the same until it returns, nothing waited for: what Python and dispatch take
    jit        inside `jax.jit`, waited for
    options    on a GPU: `jax.jit` with `jsp.config.gpu_compiler_options()`, as eager calls are
    over       eager - jit

and of one call eager and one inside jit the programs that it starts, and on a GPU the kernels and
copies that it puts on the streams (`H2D`: scalars that go to the device, `D2H`: somebody waited).
`identity` is a jitted identity, what a call of any program takes.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import statistics
import tempfile
import time

import jax
import jax.numpy as jnp

import jaxspv as jsp

from ..harness import jitted

NAMES = ("bfs", "sssp", "pagerank", "components", "mxv")


def calls(A, G, x, source):
    """name -> (function, operand)."""
    runs = {
        "bfs": lambda G: jsp.bfs(G, source),
        "sssp": lambda G: jsp.sssp(G, source),
        "pagerank": lambda G: jsp.pagerank(G),
        "components": lambda G: jsp.connected_components(G),
        "mxv": lambda G: jsp.mxv(G, x),
    }
    return {
        f"{name}, {what}": (runs[name], operand)
        for what, operand in (("prepared", G), ("bare", A))
        for name in NAMES
    }


def profile(call) -> str:
    """Programs that one call starts, and what it puts on the streams of a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(call())
        (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
        planes = list(jax.profiler.ProfileData.from_file(str(path)).planes)
    lines = [line for plane in planes for line in plane.lines]
    started = [e for line in lines for e in line.events if e.name.startswith("PjitFunction")]
    programs, end = [], 0.0
    for event in sorted(started, key=lambda e: e.start_ns):
        if event.start_ns >= end:  # a call is noted twice, one note inside the other
            programs.append(event.name.removeprefix("PjitFunction(").rstrip(")"))
            end = event.start_ns + event.duration_ns
    kinds = collections.Counter(
        next((kind for kind in ("H2D", "D2H", "D2D", "Memset") if kind in event.name), "kernels")
        for line in lines
        if line.name.startswith("Stream")
        for event in line.events
    )
    found = f"{len(programs)} programs ({', '.join(programs[:6])})"
    return ", ".join([found, *(f"{count} {kind}" for kind, count in sorted(kinds.items()))])


def medians(ways, runs):
    """Of each way the median of its milliseconds, the ways in turn; the first is (host, whole)."""
    taken = {name: [] for name in ways}
    for _ in range(runs):
        for name, call in ways.items():
            start = time.perf_counter()
            result = call()
            returned = time.perf_counter()
            jax.block_until_ready(result)
            taken[name].append((1e3 * (time.perf_counter() - start), 1e3 * (returned - start)))
    return {
        name: [statistics.median(t) for t in zip(*each, strict=True)]
        for name, each in taken.items()
    }


def main() -> None:
    """Prints a line a call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    args = parser.parse_args()
    gpu = jax.default_backend() == "gpu"
    A = jax.block_until_ready(jsp.generators.rmat(jax.random.key(0), args.scale).asformat("csr"))
    G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank", "mxv"), symmetric=True)
    x, source = jnp.ones(A.shape[0]), int(jnp.argmax(jnp.diff(A.indptr)))
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}; {A!r}")
    one = jnp.zeros(())
    identity = jax.jit(lambda x: x + 0)
    jax.block_until_ready(identity(one))
    print(f"identity: {medians({'': lambda: identity(one)}, args.runs)[''][0]:.4f} ms")
    print(f"{'':22}" + "".join(f"{t:>9}" for t in ("eager", "host", "jit", "options", "over")))
    for name, (run, operand) in calls(A, G, x, source).items():
        if name.partition(",")[0] not in args.only:
            continue
        inside, options = jax.jit(run), jitted(run)
        ways = {"eager": lambda r=run, o=operand: r(o), "jit": lambda f=inside, o=operand: f(o)}
        if gpu:
            ways["options"] = lambda f=options, o=operand: f(o)
        for call in ways.values():
            for _ in range(3):
                jax.block_until_ready(call())
        took = medians(ways, args.runs)
        (eager, host), jit = took["eager"], took["jit"][0]
        with_options = took.get("options", [float("nan")])[0]
        numbers = (eager, host, jit, with_options, eager - jit)
        print(f"{name:22}" + "".join(f"{v:9.3f}" for v in numbers), flush=True)
        for way in ("eager", "jit"):
            print(f"    {way}: {profile(ways[way])}", flush=True)


if __name__ == "__main__":
    main()
