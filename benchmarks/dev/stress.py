"""Hunts races in the BFS and SSSP kernels on a GPU: python -m benchmarks.dev.stress [GRAPHS] ...

Every source of every graph is searched again and again, the number of CTAs and threads changing
from one search to the next, all in one `lax.scan` on the device. The first result of a source is
proved by the equations that have one solution (d[source] = 0, d[v] = min of d[u] + w; weights are
positive); every other one must equal it bit for bit, and in every one each parent must be the tail
of a tight edge and lead to the source, which proves distances with weights of 0 too (--zeros: those
of half the edges). Graphs: names as in `benchmarks.suite`, "files" (all of the data folder) or
"shapes" (hubs, path, cliques, comb, grid). Graphs are padded to one of two sizes by vertices
without edges, so that few programs are compiled. --delays: at barriers, atomics and waits a warp
sleeps now and then, by its clock. Options: --sources 64, --repeats 20, --algorithms bfs sssp,
--part 0/1 of the files.
"""

import argparse
import contextlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from pallas_kernels.bfs.api import bfs, default_bfs_config
from pallas_kernels.layouts.adjacency import Adjacency, prepare_bfs
from pallas_kernels.layouts.lengths import by_weight, delta_of, prepare_sssp
from pallas_kernels.sssp.api import default_config, sssp
from pallas_kernels.sssp.problem import Rule

from .. import suite

LAUNCHES = ((132, 1024), (97, 512), (31, 256), (7, 1024))  # CTAs, threads
# for every other launch of a search of small degrees: narrow frontiers in queues of all CTAs
QUEUES = {"shared_bits": False, "solo_in": 16, "solo_out": 24, "local_most": 1 << 14}
SIZES = ((1 << 16, 1 << 19), (1 << 19, 1 << 22))  # vertices, entries; multiples of these above
COUNTS = ("unproved", "changed", "parents", "expired")
INFINITE = {"bfs": np.int32(2**30), "sssp": np.float32(np.inf)}


def shapes():
    """(name, CSR) of graphs whose degrees and diameters are extreme."""
    i = np.arange(60_000)
    a, b = (x.ravel() for x in np.meshgrid(np.arange(80), np.arange(80)))
    cliques = [
        np.concatenate([*(x + 80 * c for c in range(30)), 80 * np.arange(29) + y])
        for x, y in ((a, 0), (b, 81))
    ]
    edges = {
        "star": (0 * i[1:], i[1:]),
        "two stars": (np.r_[i[2:] % 2, 0], np.r_[i[2:], 5]),
        "path": (i[:5000], i[1:5001]),
        "cliques": cliques,
        "comb": (np.r_[i[:999], i[:1000]], np.r_[i[1:1000], i[1000:2000]]),
    }
    for name, (s, d) in edges.items():
        n = int(max(s.max(), d.max())) + 1
        one_way = sp.coo_array((np.ones(len(s)), (s, d)), shape=(n, n)).tocsr()
        yield name, sp.csr_array(one_way + one_way.T)
    yield "grid250", suite.get("grid250").matrix()


def padded(A):
    """A with vertices and capacity for one of SIZES (or a multiple of the last)."""
    for n, entries in SIZES:
        if A.shape[0] < n and A.nnz <= entries:
            break
    else:
        n, entries = (-(-size // unit) * unit for size, unit in ((A.shape[0] + 1, n), (A.nnz, n)))
    indptr = np.append(A.indptr, np.full(n - A.shape[0], A.nnz)).astype(np.int32)
    indices = np.append(A.indices, np.full(entries - A.nnz, n)).astype(np.int32)
    return indptr, indices


def padded_table(prepared, n):
    """The arrays of the kernels of low degree with room for links."""
    more = max(0, n + (1 << 14) - len(prepared["adjacency"]))
    grow = {"adjacency": n, "slots": 0, "lengths": 0}
    return prepared | {
        name: np.pad(prepared[name], ((0, more), (0, 0)), constant_values=fill)
        for name, fill in grow.items()
        if name in prepared
    }


def default_delta(indptr, weights):
    """The width of the buckets of a graph in NumPy arrays."""
    degrees = np.diff(indptr)
    finite = weights[weights < (np.iinfo(np.int32).max if weights.dtype == np.int32 else np.inf)]
    mean = finite.mean(dtype=np.float64) if finite.size else None
    return delta_of(mean, degrees.size, degrees.max(), degrees.sum(), weights.dtype)


class Problem:
    """What one graph gives to the program: arrays, and the static part that chooses the program."""

    def __init__(self, name, A, algorithm, zeros=False):
        self.name, self.algorithm = name, algorithm
        indptr, indices = padded(A)
        self.n, self.vertices, self.entries = len(indptr) - 1, A.shape[0], A.nnz
        tails = np.repeat(np.arange(A.shape[0], dtype=np.int32), np.diff(A.indptr))
        weights = suite.weights(tails, A.indices).astype(np.float32)
        if zeros:
            weights = np.where(weights % 2 == 0, 0, weights)
        T = A.T.tocsr()
        self.symmetric = bool((T.indptr == A.indptr).all() and (T.indices == A.indices).all())
        pad = len(indices) - A.nnz
        self.arrays = {
            "indptr": indptr,
            "indices": indices,
            "weights": np.pad(weights, (0, pad)),
            "tails": np.pad(tails, (0, pad), constant_values=self.n),
        }
        real = indptr, A.indices
        if algorithm == "bfs":
            self.delta = np.float32(0)
            in_indptr, in_indices = padded(T)
            prepared = prepare_bfs(*real, in_indptr, T.indices)
            if "in_indices" in prepared:
                more = len(in_indices) - A.nnz
                prepared["in_indices"] = np.pad(prepared["in_indices"], (0, more))
            forms = {"plain": {}, "prepared": prepared}
            self.arrays |= {"in_indptr": in_indptr, "in_indices": in_indices}
        else:
            self.delta = default_delta(indptr, weights)
            forms = {"plain": {}, "prepared": prepare_sssp(*real, weights, renumber=True)}
            if self.symmetric:
                of_slots = self.arrays["indices"], self.arrays["weights"]
                forms["by weight"] = by_weight(indptr, *of_slots)
        if "adjacency" in forms["prepared"]:
            forms["prepared"] = padded_table(forms["prepared"], self.n)
        self.forms = {name: extra for name, extra in forms.items() if extra or name == "plain"}


def searches(problem, extra):
    """One function (arrays, extra, delta, source) -> (values, parents, status) for each launch."""
    n, nnz = problem.n, problem.arrays["indices"].shape[0]
    low = "adjacency" in extra
    for number, (ctas, threads) in enumerate(LAUNCHES):
        form = {"ctas": ctas, "threads": threads}
        if problem.algorithm == "bfs":
            form |= QUEUES if low and number % 2 else {}
            config = default_bfs_config(n, low_degree=low)
            config = type(config)(**{**config.__dict__, **form})

            def run(a, extra, delta, source, config=config):
                del delta
                levels, tree, _, status = bfs(
                    Adjacency(a["indptr"], a["indices"], a["in_indptr"], a["in_indices"]),
                    source,
                    prepared=extra,
                    config=config,
                )
                return jnp.where(levels < 0, INFINITE["bfs"], levels), tree, status
        else:
            config = default_config(n, nnz, low_degree=low)
            config = type(config)(**{**config.__dict__, **form})

            def run(a, extra, delta, source, config=config):
                distances, tree, _, status = sssp(
                    (a["indptr"], a["indices"], a["weights"]),
                    source,
                    delta,
                    prepared=extra,
                    rule=Rule(symmetric=problem.symmetric),
                    config=config,
                )
                return distances, tree, status

        yield run


def proved(problem, a, source, values):
    """Number of vertices whose value does not solve the equations."""
    n, infinite = problem.n, INFINITE[problem.algorithm]
    weights = 1 if problem.algorithm == "bfs" else a["weights"]
    at_tail = values.at[a["tails"]].get(mode="fill", fill_value=infinite)
    through = jnp.minimum(at_tail + weights, infinite)
    best = jnp.full(n, infinite, values.dtype).at[a["indices"]].min(through, mode="drop")
    return jnp.sum(best.at[source].set(0) != values)


def bad_parents(problem, a, source, values, tree):
    """Number of vertices whose parent is not the tail of a tight edge, or leads astray."""
    n, infinite = problem.n, INFINITE[problem.algorithm]
    weights = 1 if problem.algorithm == "bfs" else a["weights"]
    head = jnp.minimum(a["indices"], n - 1)
    tight = values.at[a["tails"]].get(mode="fill", fill_value=0) + weights == values[head]
    chosen = (tree[head] == a["tails"]) & (a["tails"] < n) & tight
    has = jnp.zeros(n, bool).at[jnp.where(chosen, head, n)].set(True, mode="drop")
    jump = jnp.where(tree < 0, n, tree)
    for _ in range(n.bit_length()):
        jump = jump.at[jump].get(mode="fill", fill_value=n)
    has = has & (jump == source)
    is_source = jnp.arange(n) == source
    has = jnp.where(is_source, tree == source, jnp.where(values == infinite, tree == -1, has))
    return jnp.sum(~has)


def program(runs, problem, repeats):
    """The jitted scan over sources and repeats; counts of unproved, changed, wrong, expired."""

    @jax.jit
    def check(a, extra, delta, sources):
        def one_source(wrong, source):
            first, *_ = runs[0](a, extra, delta, source)
            wrong = wrong.at[0].add(proved(problem, a, source, first))

            def again(wrong, _):
                for run in runs:
                    values, tree, status = run(a, extra, delta, source)
                    bad = bad_parents(problem, a, source, values, tree)
                    changed = jnp.sum(values != first)
                    wrong = wrong.at[1:].add(jnp.stack([changed, bad, status]))
                return wrong, None

            return lax.scan(again, wrong, length=-(-repeats // len(runs)))

        return lax.scan(one_source, jnp.zeros(4, jnp.int32), sources)[0]

    return check


def check(problem, args):
    """Runs all forms of one graph; returns the number of wrong things."""
    rng, total = np.random.default_rng(2), 0
    sources = rng.integers(0, problem.vertices, args.sources)
    sources[0] = np.diff(problem.arrays["indptr"]).argmax()
    a = jax.tree.map(jnp.asarray, problem.arrays)
    for form, extra in problem.forms.items():
        start = time.time()
        extra = {name: jnp.asarray(x) for name, x in extra.items() if name != "slots"}
        described = tuple((name, x.shape) for name, x in sorted(extra.items()))
        symmetric = problem.symmetric and problem.algorithm == "sssp"
        key = (problem.algorithm, problem.n, a["indices"].shape, symmetric, described)
        if key not in check.programs:
            check.programs[key] = program(list(searches(problem, extra)), problem, args.repeats)
        wrong = check.programs[key](
            a, extra, jnp.float32(problem.delta), jnp.asarray(sources, jnp.int32)
        )
        wrong = np.asarray(wrong).tolist()
        total += sum(wrong)
        counts = ", ".join(map("{} {}".format, COUNTS, wrong))
        print(
            f"{problem.algorithm} {problem.name} {form}: n={problem.vertices} "
            f"nnz={problem.entries} {len(sources)} sources x {args.repeats}: {counts}, "
            f"{time.time() - start:.1f}s",
            flush=True,
        )
    return total


check.programs = {}


@contextlib.contextmanager
def delays():
    """Warps sleep for 1 us before a twelfth of their atomics, barriers and waits, by the clock."""
    from pallas_kernels.simt import mosaic

    kept = {}

    def sleepy(name):
        plain = kept[name]

        def method(k, *args, **kwargs):
            ticks = k.shr(k.clock(), 5) + k.cta * 5 + k.warp * 3
            k.if_(ticks % 12 == 0, lambda: k.pause(1000))
            return plain(k, *args, **kwargs)

        return method

    for name in ("atomic", "atomic_cas", "reduce", "sync", "grid_barrier"):
        kept[name] = getattr(mosaic.Emitter, name)
        setattr(mosaic.Emitter, name, sleepy(name))
    try:
        yield
    finally:
        for name, plain in kept.items():
            setattr(mosaic.Emitter, name, plain)


def graphs(names, part_of):
    for name in names:
        if name == "shapes":
            yield from shapes()
        elif name == "files":
            part, parts = map(int, part_of.split("/"))
            yield from ((f, suite.get(f).matrix()) for f in list(suite.files())[part::parts])
        else:
            yield name, suite.get(name).matrix()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--algorithms", nargs="+", default=["bfs", "sssp"])
    parser.add_argument("--part", default="0/1", help="K/N: each N-th of the files, from the K-th")
    parser.add_argument("--delays", action="store_true")
    parser.add_argument("--zeros", action="store_true")
    args = parser.parse_args()
    total = 0
    with delays() if args.delays else contextlib.nullcontext():
        for name, A in graphs(args.graphs, args.part):
            if A.shape[0] != A.shape[1]:
                print(f"{name} is not square", flush=True)
                continue
            for algorithm in args.algorithms:
                total += check(Problem(name, A, algorithm, args.zeros), args)
    print(f"wrong in all: {total}")
    return 1 if total else 0


if __name__ == "__main__":
    raise SystemExit(main())
