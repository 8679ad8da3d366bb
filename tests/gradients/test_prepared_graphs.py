"""A prepared graph repeats its values: no step of an optimiser takes them apart silently."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxspv as jsp

ALL = ("bfs", "sssp", "pagerank", "mxv", "vxm", "fixpoint")
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((12, 12)) < 0.4, RNG.uniform(1, 3, (12, 12)), 0).astype(np.float32)
A = jsp.from_dense(DENSE)
PREPARED = {"directed": A, "symmetric": jsp.from_dense(np.maximum(DENSE, DENSE.T))}
X = jnp.linspace(1, 2, 12)

LOSSES = {
    "mxv": lambda G: jnp.sum(jsp.mxv(G, X) ** 2),
    "vxm": lambda G: jnp.sum(jsp.vxm(X, G) ** 2),
    "sssp": lambda G: jnp.sum(jsp.sssp(G, 0).distances ** 2),
    "pagerank": lambda G: jnp.sum(jsp.pagerank(G).scores * X),
    "fixpoint": lambda G: jnp.sum(
        jsp.fixpoint(G, jnp.zeros(12), jsp.semirings.max_plus, until=jsp.until.max_iterations(3)).x
    ),
    "mxm": lambda G: jnp.sum(jsp.mxm(G, A).data ** 2),
}
WRAPPERS = {
    "plain": lambda f: f,
    "jit": jax.jit,
    "nested": lambda f: jax.jit(lambda G: jax.jit(f)(G)),
    "checkpoint": jax.checkpoint,
    "scan": lambda f: lambda G: jax.lax.scan(lambda c, _: (c + f(G), None), 0.0, None, length=2)[0],
}


@pytest.fixture(scope="module", params=PREPARED)
def graph(request):
    return jsp.prepare(PREPARED[request.param], for_=ALL)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_step_over_every_leaf_is_refused_where_it_is_differentiated(graph, wrapper):
    moving, still = eqx.partition(graph, eqx.is_inexact_array)
    f = WRAPPERS[wrapper](lambda G: LOSSES["sssp"](G))
    with pytest.raises(TypeError, match="`G.data` alone"):
        jax.grad(lambda p: f(eqx.combine(p, still)))(moving)


@pytest.mark.parametrize("name", LOSSES)
def test_each_operation_refuses_it(name):
    G = jsp.prepare(A, for_=ALL)
    with pytest.raises(TypeError, match="`G.data` alone"):
        eqx.filter_grad(LOSSES[name])(G)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_of_a_prepared_graph_are_those_of_its_matrix(graph, name):
    bare = graph.out
    want = jax.grad(lambda d: LOSSES[name](bare.with_data(d)))(bare.data)
    close = dict(rtol=2e-4, atol=1e-4)
    if graph.symmetric:  # who differentiates by both triangles apart knows their sum

        def same(got):
            both = (bare.with_data(g).todense() for g in (got, want))
            np.testing.assert_allclose(*(D + D.T for D in both), **close)
    else:

        def same(got):
            np.testing.assert_allclose(got, want, **close)

    same(jsp.grad(LOSSES[name])(graph).data)
    f = lambda d: LOSSES[name](graph.with_data(d))  # noqa: E731
    jitted = jax.jit(lambda G, d: jax.grad(lambda d: LOSSES[name](G.with_data(d)))(d))
    same(jitted(graph, graph.data))
    tangent = jax.jvp(f, (graph.data,), (jnp.ones_like(want),))[1]
    np.testing.assert_allclose(tangent, jnp.sum(want), rtol=1e-3)


def test_the_gradient_is_no_step_for_the_leaves(graph):
    dG = jsp.grad(LOSSES["sssp"])(graph)
    assert dG.layouts == {} and dG.transposed is None and dG.out.indices is None
    with pytest.raises((ValueError, TypeError)):
        eqx.apply_updates(graph, dG)
    with pytest.raises((ValueError, TypeError)):
        optax.apply_updates(graph, dG)
    with pytest.raises((ValueError, TypeError)):
        jax.tree.map(lambda p, g: p - 0.1 * g, graph, dG)


def test_training_by_with_data_moves_the_layouts(graph):
    optimiser = optax.adam(0.1)

    @jax.jit
    def step(G, state):
        dG = jsp.grad(LOSSES["sssp"])(G)
        updates, state = optimiser.update(dG.data, state)
        return G.with_data(optax.apply_updates(G.data, updates)), state

    G, state = graph, optimiser.init(graph.data)
    for _ in range(3):
        G, state = step(G, state)
    fresh = jsp.prepare(G.out, for_=ALL, symmetric=graph.symmetric or None)
    for name in LOSSES:
        np.testing.assert_allclose(LOSSES[name](G), LOSSES[name](fresh), rtol=1e-4)
