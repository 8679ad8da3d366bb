"""Inside jit, loops, checkpoint, custom_vjp; with optax and Equinox; donated; exported."""

import os

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxspv as jsp
from jaxspv._core import operation
from jaxspv._core.eager import programs
from jaxspv.formats import FORMATS

THOROUGH = os.environ.get("JAXSPV_THOROUGH") == "1"
DENSE = np.array([[0.5, 2.0, 0.0], [0.0, 0.0, 1.0], [3.0, 0.0, 0.25]], np.float32)
X = jnp.asarray([1.0, -2.0, 0.5])


def graph():
    return jsp.from_edges([0, 1, 2, 0, 3], [1, 2, 3, 2, 0], [1.0, 2.0, 1.0, 4.0, 1.0], shape=(5, 5))


def leaves_but_data(A):
    return [leaf for leaf in jax.tree.leaves(A) if not jnp.issubdtype(leaf.dtype, jnp.floating)]


def same_pattern(A, B):
    assert jax.tree.structure(A) == jax.tree.structure(B)
    for a, b in zip(leaves_but_data(A), leaves_but_data(B), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", sorted(FORMATS) if THOROUGH else ["csr"])
def test_scan_while_checkpoint_and_jit_give_one_value_and_one_slope(name):
    A = jsp.from_dense(DENSE, format=name)

    def power(step):
        def f(data, x):
            return jnp.sum(jnp.tanh(step(A.with_data(data), x)))

        return f

    def plain(A, x):
        for _ in range(3):
            x = jnp.sin(A @ x)
        return x

    def scanned(A, x):
        return lax.scan(lambda x, _: (jnp.sin(A @ x), None), x, None, length=3)[0]

    def checkpointed(A, x):
        return jax.checkpoint(plain)(A, x)

    def carried(A, x):  # the matrix itself in the carry
        return lax.scan(lambda c, _: ((c[0], jnp.sin(c[0] @ c[1])), None), (A, x), None, 3)[0][1]

    want = jax.value_and_grad(power(plain), (0, 1))(A.data, X)
    for step in (scanned, checkpointed, carried):
        got = jax.jit(jax.value_and_grad(power(step), (0, 1)))(A.data, X)
        chex.assert_trees_all_close(got, want, rtol=1e-5, atol=1e-6)

    def looped(A, x):
        def step(c):
            return c[0] + 1, jnp.sin(A @ c[1])

        return lax.while_loop(lambda c: c[0] < 3, step, (0, x))[1]

    np.testing.assert_allclose(power(looped)(A.data, X), want[0], rtol=1e-5)
    slope = jax.jvp(power(looped), (A.data, X), (A.data, X))[1]
    np.testing.assert_allclose(
        slope, jnp.vdot(want[1][0], A.data) + jnp.vdot(want[1][1], X), rtol=1e-4
    )


def test_algorithms_inside_scan_checkpoint_and_a_user_custom_vjp():
    A = graph()

    def total(data):
        d = jsp.sssp(A.with_data(data), 0).distances
        return jnp.where(jnp.isfinite(d), d, 0).sum() + jsp.pagerank(A.with_data(data)).scores[1]

    want = jax.grad(total)(A.data)
    np.testing.assert_allclose(jax.grad(jax.checkpoint(total))(A.data), want, rtol=1e-5)

    def descend(data):
        return lax.scan(lambda d, _: (d - 0.01 * jax.grad(total)(d), None), data, None, length=3)[0]

    by_hand = A.data
    for _ in range(3):
        by_hand = by_hand - 0.01 * jax.grad(total)(by_hand)
    np.testing.assert_allclose(jax.jit(descend)(A.data), by_hand, rtol=1e-5)

    @jax.custom_vjp
    def clipped(data):
        return total(data)

    clipped.defvjp(
        lambda data: jax.vjp(total, data), lambda pull, bar: (jnp.clip(pull(bar)[0], -0.5, 0.5),)
    )
    np.testing.assert_allclose(jax.grad(clipped)(A.data), jnp.clip(want, -0.5, 0.5), rtol=1e-5)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_tree_utilities_donation_and_serialisation_of_leaves(name):
    A = jsp.from_dense(DENSE, format=name)
    leaves, tree = jax.tree.flatten(A)
    same_pattern(jax.tree.unflatten(tree, leaves), A)
    stored = {
        jax.tree_util.keystr(k): np.asarray(v) for k, v in jax.tree_util.tree_leaves_with_path(A)
    }
    restored = jax.tree_util.tree_map_with_path(lambda k, _: stored[jax.tree_util.keystr(k)], A)
    np.testing.assert_array_equal(restored.todense(), DENSE)
    want = A @ X
    double = jax.jit(lambda A: A.with_data(2 * A.data), donate_argnums=0)
    spare = jax.tree.map(jnp.copy, A)
    np.testing.assert_allclose(double(spare) @ X, 2 * want)


def test_optax_trains_data_and_leaves_the_pattern_alone():
    optax = pytest.importorskip("optax")
    A = jsp.from_dense(DENSE)
    start, goal = A, jsp.from_dense(DENSE * 2) @ X
    rule = optax.adam(0.1)

    @jax.jit
    def step(data, state):
        loss, slope = jax.value_and_grad(lambda d: jnp.sum((A.with_data(d) @ X - goal) ** 2))(data)
        move, state = rule.update(slope, state)
        return optax.apply_updates(data, move), state, loss

    data, state = A.data, rule.init(A.data)
    losses = []
    for _ in range(100):
        data, state, loss = step(data, state)
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 100
    same_pattern(A.with_data(data), start)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_gradients_as_objects_have_the_pattern_of_their_matrix(name):
    A = jsp.from_dense(DENSE, format=name)

    def loss(A):
        return jnp.sum((A @ X) ** 2)

    want = jax.grad(lambda d: loss(A.with_data(d)))(A.data)
    ours = jsp.grad(loss)(A)
    assert type(ours) is type(A) and ours.shape == A.shape
    np.testing.assert_allclose(ours.data, want)
    assert all(leaf is ours.data for leaf in jax.tree.leaves(ours))
    assert type(A).__name__ in repr(ours)
    equinox = pytest.importorskip("equinox")
    theirs = equinox.filter_grad(loss)(A)
    np.testing.assert_allclose(theirs.data, want)
    assert type(A).__name__ in repr(theirs)
    same_pattern(equinox.apply_updates(A, jax.tree.map(lambda g: -0.1 * g, theirs)), A)


def test_equinox_module_with_a_matrix_inside():
    equinox = pytest.importorskip("equinox")

    class Layer(equinox.Module):
        A: jsp.CSR
        weight: jax.Array

        def __call__(self, x):
            return jnp.tanh(self.A @ (self.weight * x))

    layer = Layer(jsp.from_dense(DENSE), jnp.ones(3))
    slope = equinox.filter_jit(equinox.filter_grad(lambda layer: jnp.sum(layer(X) ** 2)))(layer)
    assert slope.A.indices is None and slope.A.data.shape == layer.A.data.shape
    moved = equinox.apply_updates(layer, jax.tree.map(lambda g: -0.1 * g, slope))
    same_pattern(moved.A, layer.A)
    assert jnp.sum(moved(X) ** 2) < jnp.sum(layer(X) ** 2)


@pytest.mark.parametrize("prepared", [pytest.param(False, marks=pytest.mark.slow), True])
def test_export_round_trip_of_a_jitted_search(prepared):
    pytest.importorskip("flatbuffers")
    A = graph()
    G = jsp.prepare(A, for_=("bfs", "sssp")) if prepared else A

    @jax.jit
    def search(G, source):
        return jsp.bfs(G, source), jsp.sssp(G, source)

    want = search(G, jnp.int32(0))
    for exported in (
        jsp.export(search)(G, jnp.int32(0)),
        jsp.export(search, platforms=("cpu", "cuda"))(G, jnp.int32(0)),
        jax.export.export(search)(G, jnp.int32(0)),
    ):
        again = jax.export.deserialize(exported.serialize())
        got = again.call(G, jnp.int32(0))
        assert isinstance(got[0], jsp.results.BFS) and isinstance(got[1], jsp.results.SSSP)
        steps = {"steps": want[1].steps}  # another form may take more of them
        got = got[0], got[1]._replace(**steps)
        chex.assert_trees_all_equal(got, want, strict=True)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_export_takes_every_format_and_names_what_it_cannot_take(name):
    pytest.importorskip("flatbuffers")
    A = jsp.from_dense(DENSE, format=name)
    exported = jsp.export(lambda A, x: (A.T, A @ x))(A, X)
    flipped, y = jax.export.deserialize(exported.serialize()).call(A, X)
    assert type(flipped) is type(A.T) and flipped.shape == A.T.shape
    np.testing.assert_allclose(y, DENSE @ np.asarray(X), rtol=1e-6)
    if name != "csr":
        return
    with pytest.raises(TypeError, match="cannot take or return a"):
        jsp.export(lambda s, A: jsp.mxv(A, X, s))(jsp.semirings.min_plus, A).serialize()
    with pytest.raises(ValueError, match="is for \\('cuda',\\) alone"):
        jsp.export(lambda A: A.T, backend="pallas", platforms=("cpu",))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_vmap_of_a_product_is_one_product_with_a_matrix(name):
    A = jsp.from_dense(DENSE, format=name)
    xs = jnp.stack([k * X for k in range(23)])
    mapped = jax.vmap(lambda x: A @ x)
    np.testing.assert_allclose(mapped(xs), np.asarray(xs) @ DENSE.T, rtol=1e-5)
    assert "length=23" not in str(jax.make_jaxpr(mapped)(xs))  # no loop over the vectors


def test_integer_results_beside_a_loss_have_no_slope():
    A = jsp.from_dense(DENSE + DENSE.T)

    def loss(data):
        B = A.with_data(data)
        near = jsp.bfs(B, 0).levels <= 1
        count = jsp.connected_components(B).count + jsp.triangle_count(B).count.astype(jnp.int32)
        return jnp.sum(jnp.where(near, B @ X, 0)) * count

    near = np.asarray(jsp.bfs(A, 0).levels) <= 1
    want = np.where(near[np.asarray(A.rowcol()[0])], np.asarray(X)[np.asarray(A.indices)], 0)
    count = int(jsp.connected_components(A).count) + int(jsp.triangle_count(A).count)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(A.data), want * count)
    _, dot = jax.jvp(lambda data: jsp.bfs(A.with_data(data), [0, 1]).levels, (A.data,), (A.data,))
    assert dot.dtype == jax.dtypes.float0


def test_graphs_and_vectors_closed_over_by_a_jitted_function():
    A = jsp.from_dense(DENSE + DENSE.T)
    x = jsp.vector_from_entries([0, 2], [1.0, 2.0], 3)
    count, y = jax.jit(lambda: (jsp.triangle_count(A).count, jsp.vxm(x, A).todense()))()
    assert int(count) == int(jsp.triangle_count(A).count)
    np.testing.assert_allclose(y, np.array([1.0, 0, 2]) @ (DENSE + DENSE.T))


@pytest.mark.parametrize("name", sorted(FORMATS) if THOROUGH else ["csr"])
def test_a_gradient_says_that_it_has_no_pattern(name):
    A = jsp.from_dense(DENSE, format=name)
    slope = jsp.grad(lambda A: jnp.sum((A @ X) ** 2))(A)
    assert slope.shape == slope.T.shape == (3, 3) and slope.nse == A.nse
    for use in (
        lambda g: g.todense(),
        lambda g: g.to_bcoo(),
        lambda g: g.count,
        lambda g: g.rowcol(),
        lambda g: g @ X,
        lambda g: A + g,
        lambda g: jsp.mxm(A, g),
        lambda g: jsp.bfs(g, 0),
        lambda g: g[0, 0],
    ):
        with pytest.raises(ValueError, match="has values and no pattern"):
            use(slope)
    np.testing.assert_array_equal(A.with_data(slope.data).rowcol(), A.rowcol())


def test_grad_names_wrong_arguments():
    def loss(A, x):
        return (A @ x).sum()

    A = jsp.from_dense(DENSE)
    for argnums in (2, -3, (0, 5)):
        with pytest.raises(ValueError, match="one of 2 positional arguments"):
            jsp.grad(loss, argnums)(A, X)
    with pytest.raises(ValueError, match="by keyword are not differentiated"):
        jsp.grad(loss, 1)(A, x=X)
    for argnums in ("A", 1.0, ()):
        with pytest.raises(TypeError, match="`argnums` must be an integer or a tuple"):
            jsp.grad(loss, argnums)
    with pytest.raises(TypeError, match="argnums.*CSR.*floating-point leaf"):
        jsp.grad(loss)(A.astype(int), X)
    gradients, aux = jsp.grad(lambda A, x: (loss(A, x), 7), (0, -1), has_aux=True)(A, X)
    assert aux == 7 and gradients[0].nse == A.nse
    np.testing.assert_allclose(gradients[1], DENSE.sum(0))


def test_eager_derivatives_where_eager_programs_have_compiler_options(monkeypatch):
    """As on a GPU: no jit inside another may have any."""
    options = {"xla_llvm_disable_expensive_passes": False}
    monkeypatch.setattr(programs, "platform_of", lambda leaves: "cuda")
    monkeypatch.setattr(programs, "_options", lambda: options)
    monkeypatch.setattr(programs, "PROGRAMS", programs._Programs(64))
    monkeypatch.setattr(operation, "PROGRAMS", programs.PROGRAMS)
    A = jsp.from_dense(np.array([[0, 2.0, 0], [1, 0, 3], [0, 1, 0]], np.float32))
    w = jnp.arange(3.0)
    losses = (
        lambda d: jnp.vdot(w, jnp.sin(jsp.mxv(A.with_data(d), w))),
        lambda d: jsp.pagerank(A.with_data(d)).scores @ w,
    )
    for loss in losses:
        slope = jax.grad(loss)(A.data)
        along = jax.jvp(loss, (A.data,), (1 / A.data,))[1]
        np.testing.assert_allclose(along, slope @ (1 / A.data), rtol=1e-4, atol=1e-6)
    assert programs.PROGRAMS.programs


EXPORTED = (
    "COO",
    "CSR",
    "CSC",
    "Tiled",
    "BitTiled",
    "SparseVector",
    "TiledVector",
    "BitVector",
    "Graph",
    "Mask",
    "Semiring",
    "Monoid",
    "UnaryOp",
    "BinaryOp",
    "Until",
    "BFS",
    "SSSP",
    "PageRank",
)


@pytest.mark.fast
@pytest.mark.parametrize("name", EXPORTED)
def test_exported_programs_name_classes_as_users_do(name):
    """Not by the module that holds them today: a move must not break what was exported before."""
    with pytest.raises(ValueError, match=f"jaxspv.{name}"):
        jax.export.register_namedtuple_serialization(
            type(name, (tuple,), {"_fields": ()}), serialized_name=f"jaxspv.{name}"
        )


@pytest.mark.parametrize("branch", [
    lambda A, s: jsp.bfs(A, s).levels.astype(float),
    lambda A, s: jsp.vxm(jsp.vector_from_entries([0, 1], [1.0, 2.0], 5), A).todense() * s,
], ids=["bfs", "vxm"])  # fmt: skip
def test_branches_of_a_batched_index_take_what_they_capture(branch):
    """`cond` and `switch` under vmap batch the constants of their branches too."""
    A = jsp.from_edges([0, 1, 2, 0], [1, 2, 3, 3], shape=(5, 5))
    branches = [lambda s: jnp.full(5, 7.0), lambda s: branch(A, s)]
    batched = jax.vmap(lambda b: jax.lax.switch(b, branches, 1))(jnp.array([0, 1, 0]))
    expected = [branches[k](1) for k in (0, 1, 0)]
    np.testing.assert_array_equal(batched, jnp.stack(expected))
