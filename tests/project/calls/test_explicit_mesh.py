"""Operands on a mesh with explicit axes, the default of `jax.make_mesh`, and on another device."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np, jaxspv as jsp
from jax.sharding import NamedSharding, PartitionSpec

mesh = jax.make_mesh((2,), ("d",))
assert "Explicit" in str(mesh.axis_types)
there = NamedSharding(mesh, PartitionSpec())
rng = np.random.default_rng(0)
dense = np.where(rng.random((9, 9)) < 0.4, rng.integers(1, 9, (9, 9)), 0).astype(np.float32)
A = jsp.from_dense(np.maximum(dense, dense.T))
GROUP = sys.argv[1]
given = {
    "A": A,
    "G": jsp.prepare(A, for_=("bfs", "sssp", "pagerank", "mxv", "vxm", "fixpoint")),
    "C": A.asformat("csc"),
    "T": A.asformat("tiled"),
    "x": jnp.arange(9.0),
    "v": jsp.vector_from_entries([1, 4, 7], [1.0, 2.0, 3.0], 9),
}
CALLS = {
    "products": {
        "mxv": lambda A, x, **_: A @ x,
        "vxm": lambda A, x, **_: jsp.vxm(x, A, jsp.semirings.min_plus),
        "prepared": lambda G, x, **_: (jsp.mxv(G, x), jsp.vxm(x, G)),
        "sparse": lambda A, C, T, v, **_: (
            jsp.mxv(A, v).todense(), jsp.mxv(C, v).todense(), jsp.mxv(T, v).todense()
        ),
        "mxm": lambda A, **_: jsp.mxm(A, A, nse=81).todense(),
        "sizes": lambda A, **_: (A @ A).todense(),
        "masked": lambda A, **_: jsp.mxm(A, A, mask=jsp.structure(A)).todense(),
        "slope": lambda A, x, **_: jax.grad(lambda d: jnp.sum((A.with_data(d) @ x) ** 2))(A.data),
        "batch": lambda A, x, **_: jax.vmap(lambda y: A @ y)(jnp.stack([x, 2 * x])),
    },
    "operations": {
        "ewise": lambda A, C, **_: jsp.ewise_add(A, C, nse=81).todense(),
        "apply": lambda A, **_: jsp.apply(A, jsp.operators.ainv).todense(),
        "select": lambda A, **_: jsp.select(A, jsp.operators.valuegt, 3.0).todense(),
        "reduce": lambda A, **_: jsp.reduce(A, axis=1).todense(),
        "extract": lambda A, **_: jsp.extract(A, [2, 1], None).todense(),
        "assign": lambda A, **_: jsp.assign(A, 5.0, [2], [3], nse=82).todense(),
        "formats": lambda A, **_: (A.asformat("csc").todense(), A.asformat("coo").T.todense()),
    },
    "traversals": {
        "bfs": lambda A, **_: jsp.bfs(A, 0, deterministic=True)[:2],
        "sources": lambda A, **_: jsp.bfs(A, jnp.arange(3)).levels,
        "batch": lambda A, **_: jax.vmap(lambda s: jsp.sssp(A, s).distances)(jnp.arange(3)),
        "sssp": lambda A, **_: jsp.sssp(A, 0, deterministic=True)[:2],
        "prepared": lambda G, **_: (jsp.bfs(G, 0).levels, jsp.sssp(G, 0).distances),
        "slope": lambda A, **_: jax.grad(lambda d: jsp.sssp(A.with_data(d), 0).distances.sum())(
            A.data
        ),
    },
    "algorithms": {
        "pagerank": lambda A, G, **_: (jsp.pagerank(A).scores, jsp.pagerank(G).scores),
        "components": lambda A, **_: jsp.connected_components(A).labels,
        "monotone": lambda A, x, **_: jsp.fixpoint(A, x, "min_plus", monotone=True).x,
        "order": lambda A, **_: jsp.reverse_cuthill_mckee(A),
        "triangles": lambda A, **_: jsp.triangle_count(A).count,
        "soft": lambda A, **_: jsp.soft_sssp(A, 0, 0.1).distances,
        "fixpoint": lambda A, x, **_: jsp.fixpoint(
            A, x, jsp.semirings.min_plus, until=jsp.until.unchanged()
        ).x,
    },
}
for name, f in CALLS[GROUP].items():
    want = jax.jit(lambda given: f(**given))(given)
    same = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=name)
    moved = jax.device_put(given, there)
    with jax.set_mesh(mesh):
        got = jax.jit(lambda given: f(**given))(moved)
        plain = f(**given)  # of one device, called eagerly
    jax.tree.map(same, got, want)
    jax.tree.map(same, plain, want)
    if name != "slope":  # outside of `set_mesh` JAX differentiates nothing on such a mesh
        got = f(**moved)
        jax.tree.map(same, got, want)
    assert all(len(leaf.devices()) == 2 for leaf in jax.tree.leaves(got)), name
    print("right", name)
if GROUP == "products":  # a batch divided over the axes, as docs/batching.md says
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), A)
    batch = jax.device_put(batch, NamedSharding(mesh, PartitionSpec("d")))
    square = jax.vmap(lambda A: jsp.mxm(A, A, nse=81).todense())
    with jax.set_mesh(mesh):
        got = jax.sharding.auto_axes(square, out_sharding=PartitionSpec("d"))(batch)
    np.testing.assert_allclose(got, [A.todense() @ A.todense()] * 2)
"""


@pytest.mark.parametrize("group", ["products", "operations", "traversals", "algorithms"])
def test_replicated_operands(group):
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", "import sys\n" + PROGRAM, group]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | flags)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("right") >= 5


OTHER = """
import jax, jax.numpy as jnp, numpy as np, jaxspv as jsp

first, second = jax.devices()
dense = np.array([[0, 2, 0, 5], [2, 0, 3, 0], [0, 3, 0, 1], [5, 0, 1, 0]], np.float32)
A = jax.device_put(jsp.from_dense(dense), second)
v = jax.device_put(jsp.vector_from_entries([1, 3], [1.0, 2.0], 4), second)
x = jax.device_put(jnp.arange(4.0), second)
row, col = (jax.device_put(jnp.asarray(k), second) for k in np.nonzero(dense))
above, twice = np.where(dense > 2, dense, 0), np.kron(np.eye(2), dense)
put, cut, more = dense.copy(), dense.copy(), np.pad(dense, (0, 2))
put[0, 0], cut[0, 1] = 7, 0

found = {
    "from_dense": (jsp.from_dense(jax.device_put(jnp.asarray(dense), second)), dense),
    "from_edges": (jsp.from_edges(row, col, A.data), dense),
    "from_bcoo": (jsp.io.from_bcoo(A.to_bcoo()), dense),
    "extract": (jsp.extract(A, [0, 2], None), dense[[0, 2]]),
    "slice": (A[1:3], dense[1:3]),
    "element": (A[0, 3], 5),
    "pairs": (A[[0, 1], [1, 2]], [2, 3]),
    "select": (jsp.select(A, "valuegt", 2.0), above),
    "add": (jsp.ewise_add(A, A), 2 * dense),
    "kron": (jsp.kron(jax.device_put(jsp.from_dense(np.eye(2)), second), A), twice),
    "assign": (jsp.assign(A, 7.0, [0], [0]), put),
    "assign all": (jsp.assign(A, A), dense),
    "remove": (jsp.graphblas.remove_element(A, 0, 1), cut),
    "resize": (jsp.graphblas.resize(A, 6, 6), more),
    "mxm": (A @ A, dense @ dense),
    "block_diag": (jsp.learning.block_diag([A, A]), twice),
    "k_truss": (jsp.k_truss(A, 2), dense),
    "sum": (A.sum(), 22),
    "greatest": (A.max(), 5),
    "sums": (A.sum(axis=0), dense.sum(0)),
    "diagonal": (A.diagonal(), np.zeros(4)),
    "nonzero": (A.nonzero()[1], np.nonzero(dense)[1]),
    "vector": (jsp.vector_from_dense(x), np.arange(4)),
    "part": (jsp.extract(v, [3, 0]), [2, 0]),
    "put": (jsp.assign(v, 5.0, [0]), [5, 1, 0, 2]),
    "forest": (jsp.minimum_spanning_forest(A).weights.sum(), 6),
    "padded": (jsp.pad(A, n=6, nse=20).out, more),
    "unpadded": (jsp.unpad(jsp.pagerank(G := jsp.pad(A, n=6)).scores, G).shape[0], 4),
}
for name, (result, want) in found.items():
    for leaf in jax.tree.leaves(result):
        if isinstance(leaf, jax.Array):
            assert leaf.devices() == {second}, name
    got = result.todense() if hasattr(result, "todense") else result
    np.testing.assert_array_equal(got, want, err_msg=name)
graph = jsp.prepare(A, for_=("bfs", "sssp", "pagerank", "mxv"))
assert all(leaf.devices() == {second} for leaf in jax.tree.leaves(graph))
assert A.data.committed and not jsp.from_dense(dense).data.committed
assert jsp.from_dense(dense).data.devices() == {first}
print("right")
"""


def test_results_of_eager_calls_stay_on_the_device_of_their_operands():
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", OTHER]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | flags)
    assert done.stdout == "right\n", done.stderr[-3000:]
