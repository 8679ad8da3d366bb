"""Checks of the bytes that devices bring each other; `program.py` runs them."""

import jax
import jax.numpy as jnp

import jaxspv as jsp
from benchmarks.traversal import mesh_costs
from jaxspv.algorithms.bfs.mesh import _levels


def sizes(jaxpr, inside=False):
    """Bytes that the collectives in the loop of a search bring from other devices."""
    total = 0
    for equation in jaxpr.eqns:
        name, out = equation.primitive.name, equation.outvars[0].aval
        if inside and name in ("all_gather", "all_to_all"):
            whole = out.size * out.dtype.itemsize
            parts = equation.params["axis_size"] if name == "all_gather" else out.shape[0]
            total += whole * (parts - 1) // parts
        for inner in jax.tree.leaves(
            list(equation.params.values()),
            is_leaf=lambda p: hasattr(p, "eqns") or hasattr(p, "jaxpr"),
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                total += sizes(inner, inside or name == "while")
    return total


def told_of(G):
    """The bytes of a level of each form that a search has."""
    search = lambda G: _levels(G, jnp.int32(0), None, parents=False).levels  # noqa: E731
    return sizes(jax.make_jaxpr(search)(G).jaxpr)


def costs(mesh_of):
    """The bytes of a level are those of the model in `benchmarks sharded`."""
    A = jsp.from_edges([0], [1], shape=(4096, 4096))
    for name in ("one", "eight", "columns", "blocks", "both"):
        G = jsp.shard(A, *mesh_of(name))
        assert told_of(G) == mesh_costs.bytes_of_level(4096, *G.part.grid), name
        H = jsp.shard(A, *mesh_of(name), symmetric=True)
        ways = mesh_costs.bytes_of_level(4096, *G.part.grid)
        assert told_of(H) == ways + mesh_costs.bytes_of_pull(4096, *G.part.grid), name
