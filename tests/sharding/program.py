"""What runs in a process of its own with several CPU devices: sharded graphs beside one device.

`python program.py NAME ...` runs the checks of these names on their meshes and prints a line of
JSON for each: [name, "right"] or [name, what was wrong].
"""

import functools
import importlib.util
import json
import os
import sys
import traceback

if __name__ == "__main__":  # pytest, which looks for doctests in here, keeps its own device
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"  # most of the time is compilation

import building
import features
import jax
import jax.numpy as jnp
import numpy as np
import paths
import traffic
import tuples
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P
from sharded_calls import (
    compare,
    everything,
    exact,
    from_several,
    refused,
    same,
    searches,
    slopes,
    some,
    written,
)

import jaxspv as jsp
from jaxspv.algorithms.bfs import mesh as push

RNG = np.random.default_rng(0)
MESHES = {  # shape, names of the axes, spec
    "one": ((1,), ("d",), None),
    "two": ((2,), ("d",), P("d")),
    "four": ((4,), ("d",), P("d")),
    "eight": ((8,), ("d",), None),
    "columns": ((4,), ("d",), P(None, "d")),
    "blocks": ((2, 2), ("r", "c"), P("r", "c")),
    "both": ((2, 4), ("r", "c"), P("c", "r")),
    "one axis of two": ((2, 2), ("r", "c"), P("c")),
}


def mesh_of(name, kind=AxisType.Auto):
    shape, names, spec = MESHES[name]
    return jax.make_mesh(shape, names, axis_types=(kind,) * len(names)), spec


@functools.cache
def several():
    """One matrix with much in it: a random graph, a directed path, isolated vertices, a cycle with
    a zero edge, self loops; values that no sum rounds."""
    n = 34 + 30 + 9 + 7
    dense = np.zeros((n, n), np.float32)
    random = RNG.random((34, 34)) < 0.1
    dense[:34, :34] = np.where(random, RNG.integers(1, 9, (34, 34)), 0)
    for v in range(34, 63):
        dense[v, v + 1] = 1 + v % 3
    row, col = np.nonzero(dense)
    more = [75, 75, 76, 77], [75, 76, 77, 75], [2, 0, 0, 0]
    ends = (np.append(a, b) for a, b in zip((row, col), more[:2], strict=True))
    return jsp.from_edges(
        *ends, np.append(dense[row, col], more[2]).astype(np.float32), shape=(n, n)
    )


def triangles():
    """Whole rows visit each other; blocks are refused."""
    dense = np.triu(RNG.random((70, 70)) < 0.2)
    A = jsp.from_dense((dense | dense.T).astype(np.float32))
    for name in ("one", "four"):
        exact(jsp.triangle_count(jsp.shard(A, *mesh_of(name))), jsp.triangle_count(A))
    assert jsp.triangle_count(jsp.shard(several(), *mesh_of("four"))).overflow
    try:
        jsp.triangle_count(jsp.shard(A, *mesh_of("blocks")))
    except NotImplementedError as error:
        assert "whole rows" in str(error)
    else:
        raise AssertionError("blocks")


def operands(A):
    n = A.shape[0]
    x = jnp.asarray(RNG.random(n), jnp.float32)
    return x, jnp.asarray(RNG.random((n, 3)), jnp.float32)


@functools.cache
def on_one_device():
    A = several()
    given = operands(A)
    return A, given, jax.jit(everything)(A, *given)


def on(name):
    """Under jit, all functions (or some) in one program; the matrix comes back as it was."""
    A, given, want = on_one_device()
    mesh, spec = mesh_of(name)
    G = jsp.shard(A, mesh, spec)
    back = G.unshard()
    exact((back.indptr, back.indices, back.data), (A.indptr, A.indices, A.data))
    calls = {"eight": everything, "both": written}.get(name, some)
    compare(jax.jit(calls)(G, *given), want)


def small():
    """More devices than vertices, devices without entries, no entries at all."""
    mesh, _ = mesh_of("eight")
    few = jsp.from_edges([0, 2], [1, 0], [2.0, 3.0], shape=(3, 3))
    for A in (few, jsp.from_edges([], [], shape=(1, 1))):
        G = jsp.shard(A, mesh)
        exact(jsp.bfs(G, 0), jsp.bfs(A, 0, deterministic=True))
        same(jsp.mxv(G, jnp.ones(A.shape[0])), jsp.mxv(A, jnp.ones(A.shape[0])))
    for name in ("two", "columns", "blocks"):
        mesh, spec = mesh_of(name)
        no_columns = jsp.mxm(jsp.shard(few, mesh, spec), jnp.zeros((3, 0)))
        assert no_columns.shape == (3, 0)
        empty = jsp.sharding.shard_edges([], [], mesh=mesh, spec=spec, n=0)
        x, X = jnp.zeros(0), jnp.zeros((0, 2))
        found = jsp.mxv(empty, x), jsp.vxm(x, empty, "min_plus"), jsp.mxm(empty, X)
        moved = empty.gather(jsp.mxm(empty, empty.deal(X)))
        assert [y.shape for y in (*found, moved)] == [(0,), (0,), (0, 2), (0, 2)]
        assert int(jsp.connected_components(empty).count) == 0


def chunks():
    """Rows expanded in chunks, as on large graphs."""
    push.EDGES, push.VERTICES, push.MANY = 8, 4, 1
    A, _, want = on_one_device()
    compare(jax.jit(searches)(jsp.shard(A, *mesh_of("blocks"))), want)


def explicit():
    """Explicit axes, eagerly, under `set_mesh` and from inside of a `shard_map`."""
    A, (x, X), want = on_one_device()
    mesh, spec = mesh_of("blocks", AxisType.Explicit)
    G = jsp.shard(A, mesh, spec)

    with jax.set_mesh(mesh):
        specs = {"in_specs": (G.spec, P()), "out_specs": P(), "check_vma": False}
        found = [jax.jit(some)(G, x), jax.jit(jax.shard_map(some, **specs))(G, x)]
        far = lambda values: jsp.sssp(G.with_data(values), 34).distances[63]  # noqa: E731
        exact(jnp.sum(jax.grad(far)(G.data)), 29)  # one for each edge of the path
    for got in ({"mxv": jsp.mxv(G, x), "bfs": jsp.bfs(G, 3)}, *found):
        compare(got, want)


def gradients():
    """Slopes by the values, in the places of the matrix."""
    A, (x, _), _ = on_one_device()
    mesh, spec = mesh_of("blocks")
    got, want = jax.jit(slopes)(jsp.shard(A, mesh, spec), x), jax.jit(slopes)(A, x)
    for name, slope in want.items():
        same(got[name].unshard().data, slope.data, rtol=1e-3, atol=1e-6)


def told():
    """`explain` names the form; what cannot be is refused with words."""
    A, (mesh, spec) = several(), mesh_of("blocks")
    G = jsp.shard(A, mesh, spec)
    plan = str(jsp.explain("bfs", G))
    assert "bfs on a mesh: xla/collectives" in plan and "blocks over 2 by 2 devices" in plan
    full = jsp.from_dense(np.ones((20, 20)))
    assert "one GPU is faster" not in str(jsp.explain("bfs", jsp.shard(full, mesh, spec)))
    thin = jsp.generators.grid2d(None, 8)
    assert "`bfs(G.unshard(), source)`" in str(jsp.explain("bfs", jsp.shard(thin, mesh, spec)))
    alone = jsp.shard(thin, mesh_of("one")[0])
    assert "one GPU is faster" not in str(jsp.explain("bfs", alone))
    cases = (
        (NotImplementedError, "`method`", lambda: jsp.mxv(G, jnp.ones(G.n), method="dense")),
        (NotImplementedError, "`mask`", lambda: jsp.apply(G, jnp.sqrt, mask=G)),
        (ValueError, "`mask` must have", lambda: jsp.mxv(G, jnp.ones(G.n), mask=[True])),
        (NotImplementedError, "positional", lambda: jsp.mxv(G, jnp.ones(G.n), "any_secondi")),
        (ValueError, "80 vertices", lambda: jsp.mxv(G, jnp.ones(3))),
        (ValueError, "`source` must lie", lambda: jsp.bfs(G, 80)),
        (ValueError, "finite and >= 0", lambda: jsp.pagerank(G.with_data(-G.data - 1))),
        (ValueError, "finite and >= 0", lambda: jsp.pagerank(G.with_data(G.data / 0))),
        (ValueError, "finite and >= 0", lambda: jsp.pagerank(G.with_data(G.data * jnp.nan))),
        (ValueError, "`spec` must name axes", lambda: jsp.shard(A, mesh, P("x"))),
        (TypeError, "`mesh` must be", lambda: jsp.shard(A, 4)),
        (ValueError, "square", lambda: jsp.shard(jsp.from_dense(np.ones((2, 3))), mesh)),
        (ValueError, "outside of jit", lambda: jax.jit(lambda A: jsp.shard(A, mesh).data)(A)),
    )
    refused(cases)
    leaves, tree = jax.tree.flatten(G)
    program = jsp.export(lambda leaves, s: jsp.bfs(tree.unflatten(leaves), s))(leaves, 0)
    exact(program.call(leaves, 0).levels, jsp.bfs(A, 0).levels)
    if importlib.util.find_spec("flatbuffers"):
        refused([(TypeError, "`tree.unflatten(leaves)`", jsp.export(lambda G: G)(G).serialize)])
    flawed = jax.jit(jsp.pagerank)(G.with_data(-G.data - 1))
    assert np.isnan(flawed.scores).all() and not flawed.converged


def quick():
    """A product and a search on two devices."""
    A = several()
    G, x = jsp.shard(A, *mesh_of("two")), jnp.arange(A.shape[0], dtype=jnp.float32)
    y, search = jax.jit(lambda G, x: (jsp.mxv(G, x), jsp.bfs(G, 34)))(G, x)
    same(y, A.to_scipy() @ np.asarray(x))
    levels = np.append(np.full(34, -1), np.append(np.arange(30), np.full(16, -1)))
    exact(search[0], levels)
    exact(search[1], np.where(levels > 0, np.arange(80) - 1, np.where(levels == 0, 34, -1)))


def one_launch():
    """The kernels of all devices, interpreted together: pushed, pulled, both; who may take them."""
    from jaxspv.algorithms.bfs.mesh import BFSConfig, one_launch
    from jaxspv.algorithms.components import one_launch as components
    from jaxspv.algorithms.pagerank.mesh import one_launch as pagerank
    from jaxspv.ops.products.mesh_gpu import one_launch as multiply
    from pallas_kernels.bfs.mesh import places
    from pallas_kernels.simt.device import Grid
    from tests.kernels.warps_apart import gridded

    places.BYTE = 15  # the search of 30 levels is told in words, the others in bytes
    sizes, most = {"ctas": 2, "threads": 64}, np.int32(60)
    small = functools.partial(BFSConfig, threads=32, interpret=True, buffer=16, span=4)
    rng = np.random.default_rng(0)
    hub = np.append(rng.integers(0, 90, 150), np.zeros(60, int)), rng.integers(0, 90, 210)
    random = jsp.from_edges(np.append(*hub), np.append(*hub[::-1]), shape=(97, 97))
    both = jax.jit(one_launch, static_argnames=("parents", "config"))
    for A, symmetric, name, config in (
        (several(), False, "two", small(ctas=2)),
        (random, True, "two", small(ctas=2, pull_edges=0, beta=2)),
        (random, True, "four", small(ctas=1, pull_edges=60, alpha=4.0, beta=4)),
    ):
        mesh, spec = mesh_of(name)
        G = jsp.shard(A, mesh, spec, symmetric=symmetric)
        joined = functools.partial(gridded(components), grid=Grid(**sizes, interpret=True))
        got = jax.jit(joined)(G)
        exact(got, jsp.connected_components(A))
        for source in (0, 34, A.shape[0] - 1):
            got = both(G, jnp.int32(source), None, parents=True, config=config)
            exact(got, jsp.bfs(A, source, deterministic=True))
        got = both(G, jnp.int32(source), None, parents=False, config=config)
        exact(got, jsp.bfs(A, source, parents=False))
    small_grid = Grid(2, 64, interpret=True)
    ranked = functools.partial(gridded(pagerank), grid=small_grid)
    by_rows = jax.jit(functools.partial(gridded(multiply), flip=False, grid=small_grid))
    for name, columns in (("two", 3), ("four", 130)):
        A, X = several(), jnp.asarray(RNG.integers(0, 9, (80, columns)), jnp.float32)
        got = by_rows(jsp.shard(A, *mesh_of(name)), X, jsp.semirings.plus_times)
        exact(got, A.to_scipy() @ np.asarray(X))
    tol, least = np.float32(1e-6), np.int32(0)
    row, col = random.rowcol()
    for values in (1.0 + (row + col) % 3, random.data + jnp.arange(random.nse) % 3):
        A = random.with_data(values)
        G = jsp.shard(A, *mesh_of("two"), symmetric=True)
        got = jax.jit(ranked)(G, None, np.float32(0.8), tol, most, least)
        compare({"pagerank": got}, {"pagerank": jsp.pagerank(A, 0.8, max_iterations=60)})
    try:
        jsp.bfs(G, 0, backend="pallas")
    except NotImplementedError as error:
        assert "one_launch" in str(error)
    else:
        raise AssertionError("no GPUs")


def stars():
    """Shares of hubs, isolated vertices and two components, to the iteration of exact sums."""
    from jaxspv.algorithms.pagerank.mesh import one_launch as pagerank
    from pallas_kernels.simt.device import Grid
    from tests.kernels.warps_apart import gridded

    ranked = functools.partial(gridded(pagerank), grid=Grid(2, 64, interpret=True))
    knobs = np.float32(0.6), np.float32(1e-4), np.int32(60), np.int32(0)
    leaves = np.arange(1, 100)
    hub = np.zeros(99, int), leaves
    path = np.arange(101, 130), np.arange(102, 131)
    for ends, n in ((hub, 100), (hub, 140), (np.append(hub, path, 1), 140)):
        row, col = np.append(*ends), np.append(*ends[::-1])
        A = jsp.from_edges(row, col, np.ones(row.size, np.float32), shape=(n, n))
        want, change, steps = np.full(n, 1 / n), 1.0, 0
        share = 1 / np.maximum(np.bincount(row, minlength=n), 1)
        alone = np.bincount(row, minlength=n) == 0
        while change > 1e-4:
            flow = np.bincount(row, (want * share)[col], n) + want[alone].sum() / n
            new = 0.6 * flow + 0.4 / n
            want, change, steps = new, np.abs(new - want).sum(), steps + 1
        for name in ("two", "four"):
            G = jsp.shard(A, *mesh_of(name), symmetric=True)
            for got in (jax.jit(ranked)(G, None, *knobs), jsp.pagerank(G, 0.6, tol=1e-4)):
                assert int(got.iterations) == steps and bool(got.converged), (got.iterations, steps)
                assert np.abs(np.asarray(got.scores, np.float64) - want).sum() < 1e-6


def pulls():
    """Levels of symmetric graphs are pulled where that is less."""
    for name, mesh in (("minnesota", "four"), ("jazz", "both")):
        A = jsp.read_mtx(jsp.bundled(name))
        got = jax.jit(from_several)(jsp.shard(A, *mesh_of(mesh), symmetric=True))
        compare(got, jax.jit(from_several)(A))


def real(path):
    """A file, over whole rows and over blocks."""
    A = jsp.read_mtx(path)
    A = A.with_data(jnp.abs(A.data))
    degrees = np.diff(np.asarray(A.asformat("csr").indptr))

    def searched(A, source):
        return {
            "bfs": jsp.bfs(A, source, deterministic=True),
            "sssp": jsp.sssp(A, source, deterministic=True),
            "components": jsp.connected_components(A),
        }

    source = int(np.argmax(degrees))
    want = jax.jit(searched)(A, source)
    for name in ("eight", "both"):
        compare(jax.jit(searched)(jsp.shard(A, *mesh_of(name)), source), want)


CHECKS = {f"on {name}": functools.partial(on, name) for name in MESHES}
CHECKS |= {
    f.__name__: f
    for f in (quick, small, chunks, explicit, gradients, triangles, told, pulls, one_launch)
}
CHECKS |= {"paths": lambda: paths.paths(mesh_of, several())}
CHECKS |= {"tuples": lambda: tuples.tuples(mesh_of, several())}
CHECKS |= {"inside": lambda: features.inside(mesh_of, several())}
CHECKS |= {"stars": stars, "dealt": lambda: features.dealt(mesh_of, several())}
CHECKS |= {
    f.__name__: functools.partial(f, mesh_of)
    for f in (building.edges, building.drawn, building.read, traffic.costs)
}
CHECKS |= {
    f.__name__: functools.partial(f, mesh_of)
    for f in (features.closed_over, features.given, features.split, features.narrow)
}

if __name__ == "__main__":
    for check in sys.argv[1:]:
        try:
            CHECKS[check]() if check in CHECKS else real(check)
            said = "right"
        except Exception:
            said = traceback.format_exc()[-3000:]
        print(json.dumps([check, said]), flush=True)
