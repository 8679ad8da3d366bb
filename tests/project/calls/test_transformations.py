"""Operations are JAX primitives: what every transformation, eagerly and traced, makes of them."""

import functools
import gc
import os
import subprocess
import sys
import weakref

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv._core.eager.arrays import is_eager
from jaxspv._core.eager.programs import PROGRAMS
from jaxspv._core.operation import OPERATIONS, Operation

pytestmark = pytest.mark.fast

RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((9, 9)) < 0.35, RNG.integers(1, 9, (9, 9)), 0).astype(np.float32)
A = jsp.from_dense(np.maximum(DENSE, DENSE.T))
X = jnp.arange(9, dtype=jnp.float32) / 4
CALLS = {
    "bfs": lambda A, s: jsp.bfs(A, s).levels,
    "sssp": lambda A, s: jsp.sssp(A, s).distances,
    "mxv": lambda A, s: A @ (X + s),
    "spmm": lambda A, s: A @ jnp.stack([X, X + s], axis=1),
}
SMOOTH = {
    "mxv": lambda d: jnp.sum((A.with_data(d) @ X) ** 2),
    "sssp": lambda d: jnp.sum(jsp.sssp(A.with_data(d), 0).distances ** 2),
    "spmm": lambda d: jnp.sum((A.with_data(d) @ jnp.stack([X, X], axis=1)) ** 2),
}


@pytest.fixture
def compilations():
    """How many programs XLA compiled since the test began."""
    count = [0]

    def listen(event, duration_secs, **_):
        count[0] += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield lambda: count[0]
    jax.monitoring.unregister_event_duration_listener(listen)


def primitives(jaxpr):
    return [equation.primitive for equation in jaxpr.eqns if equation.primitive in OPERATIONS]


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_readable_equation(name):
    jaxpr = jax.make_jaxpr(lambda A: CALLS[name](A, 1))(A).jaxpr
    assert len(primitives(jaxpr)) == 1
    assert len(str(jaxpr)) < 3000, "no form is traced into it"


@pytest.mark.parametrize("name", CALLS)
def test_disable_jit(name):
    want = CALLS[name](A, 1)
    with jax.disable_jit():
        np.testing.assert_allclose(CALLS[name](A, 1), want, rtol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_eager_calls_and_maps_compile_once(name, compilations):
    fn = CALLS[name]
    batch = jax.vmap(functools.partial(fn, A))
    sources = [jnp.asarray(np.arange(k, k + 3, dtype=np.int32)) for k in range(4)]
    fn(A, sources[0][1]), batch(sources[0])
    before = compilations()
    found = [batch(s) for s in sources]
    assert compilations() == before
    want = np.stack([fn(A, jnp.int32(k)) for k in range(6)])
    for k in range(4):
        np.testing.assert_allclose(found[k], want[k : k + 3], rtol=1e-6)
    nested = jax.vmap(batch)(jnp.stack(sources[:2]))
    np.testing.assert_allclose(nested, np.stack([want[:3], want[1:4]]), rtol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_eager_gradients_compile_once(name, compilations):
    loss = SMOOTH[name]
    values = [jnp.asarray(k * np.asarray(A.data)) for k in (1, 2, 3)]
    grad = jax.grad(loss)
    grad(values[0])
    before = compilations()
    found = [grad(d) for d in values]
    assert compilations() == before
    assert not np.array_equal(found[0], found[1])


COMPOSED = {
    "vmap of grad": lambda loss, s: jax.vmap(jax.grad(loss))(s),
    "grad of vmap": lambda loss, s: jax.grad(lambda s: jax.vmap(loss)(s).sum())(s),
    "jvp of vmap": lambda loss, s: jax.jvp(jax.vmap(loss), (s,), (s,))[1],
    "vmap of vmap": lambda loss, s: jax.vmap(jax.vmap(loss))(s[None]),
}


@pytest.mark.parametrize("composed", COMPOSED)
@pytest.mark.parametrize("name", SMOOTH)
def test_eager_compositions_compile_once(name, composed, compilations):
    stacks = [np.asarray(A.data) * np.float32([[k], [k + 1]]) for k in (1, 2, 3)]
    run = functools.partial(COMPOSED[composed], SMOOTH[name])
    found = [run(jnp.asarray(stacks[0]))]
    before = compilations()
    found += [run(jnp.asarray(stack)) for stack in stacks[1:]]
    assert compilations() == before
    np.testing.assert_allclose(found[0].reshape(2, -1)[1], found[1].reshape(2, -1)[0], rtol=1e-5)


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize("name", SMOOTH)
def test_vmap_of_vmap_over_values(name, shape):
    loss, factor = SMOOTH[name], 1 + np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    values = jnp.asarray(factor[..., None] * np.asarray(A.data))
    want = float(loss(A.data)) * factor**2
    np.testing.assert_allclose(jax.vmap(jax.vmap(loss))(values), want, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.vmap(loss)))(values), want, rtol=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_without_jit(name):
    want = jax.grad(SMOOTH[name])(A.data)
    with jax.disable_jit():
        np.testing.assert_allclose(jax.grad(SMOOTH[name])(A.data), want, rtol=1e-5)


@pytest.mark.parametrize("name", CALLS)
def test_x64_toggled_compiles_once_each(name, compilations):
    def both():
        with jax.enable_x64():
            wide = CALLS[name](A.astype(jnp.float64), 1)
        return CALLS[name](A, 1), wide

    both()
    before = compilations()
    narrow, wide = both()
    assert compilations() == before
    np.testing.assert_allclose(narrow, wide, rtol=1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_maps_and_gradients_compose(name):
    loss = SMOOTH[name]
    stack = jnp.stack([A.data, 2 * A.data])
    each = jnp.stack([jax.grad(loss)(d) for d in stack])
    np.testing.assert_allclose(jax.vmap(jax.grad(loss))(stack), each, rtol=1e-5)
    whole = jax.grad(lambda s: jax.vmap(loss)(s).sum())(stack)
    np.testing.assert_allclose(whole, each, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.grad(jax.checkpoint(loss)))(A.data), each[0], rtol=1e-5)
    push = jax.jvp(loss, (A.data,), (jnp.ones_like(A.data),))[1]
    np.testing.assert_allclose(push, each[0].sum(), rtol=1e-4)
    np.testing.assert_allclose(
        jax.linearize(loss, A.data)[1](jnp.ones_like(A.data)), push, rtol=1e-4
    )


def test_debug_nans_and_x64_are_seen():
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jax.block_until_ready(A @ X.at[0].set(jnp.nan))
    assert (A @ X).dtype == jnp.float32
    with jax.enable_x64():
        wide = A.astype(jnp.float64)
        assert (wide @ X.astype(jnp.float64)).dtype == jnp.float64
    assert (A @ X).dtype == jnp.float32


NOT_FINITE = {
    "spmv": lambda A, x: jsp.mxv(A, x, "min_plus"),
    "sssp": lambda A, x: jsp.sssp(A, 0).distances,
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", NOT_FINITE)
def test_debug_infs_name_the_operation(name, wrap):
    """JAX runs the program again without jit, which must end."""
    one = jsp.from_edges([0], [1], np.ones(1, np.float32), shape=(3, 3))  # nothing reaches 2
    call, zeros = wrap(NOT_FINITE[name]), jnp.zeros(3)
    assert np.isinf(call(one, zeros)).any()
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match=f"{name} gives a NaN or an"):
        jax.block_until_ready(call(one, zeros))


def test_debug_nans_pass_gradients_of_what_is_not_reached():
    two = jsp.from_edges([0, 2, 2, 3], [1, 3, 4, 4], jnp.ones(4), shape=(5, 5))
    with jax.debug_nans(True):
        g = jax.grad(lambda d: jsp.closure(two.with_data(d), "log_plus", start=0).x[1])(two.data)
    assert g.tolist() == [1, 0, 0, 0]


STRICT = CALLS | {
    "vmap of bfs": lambda A, s: jax.vmap(lambda t: jsp.bfs(A, t).levels)(jnp.arange(4)),
    "products": lambda A, s: jsp.ewise_add(A @ A, A).todense(),
    "log_plus": lambda A, s: jsp.mxv(A, X, jsp.semirings.log_plus),
    "k_best": lambda A, s: k_best(A, jsp.semirings.k_best(2)),
    "slope": lambda A, s: jax.grad(lambda d: jsp.pagerank(A.with_data(d)).scores[0])(A.data),
    "samples": lambda A, s: jsp.learning.sample_neighbors(jax.random.key(0), A, [0, 1], (3,)),
    "sell": lambda A, s: A.asformat("sell").todense(),
    "kron": lambda A, s: jsp.kron(A, A).todense(),
    "means": lambda A, s: [jsp.learning.aggregate(A, how) for how in ("mean", "std")],
    "closure": lambda A, s: jsp.closure(A.with_data(A.data / 50), "plus_times", start=0).x,
    "walks": lambda A, s: jsp.learning.random_walk(jax.random.key(0), A, [0, 1], 3, p=0.5, q=2.0),
}


def k_best(A, semiring):
    walks = A.with_data(semiring.lift(A.data))
    return jsp.closure(walks, semiring, start=0, until=jsp.until.max_iterations(3)).x


@pytest.mark.parametrize("name", STRICT)
def test_strict_rules_of_promotion_are_for_the_code_of_users(name):
    want = STRICT[name](A, 1)
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        for found in (STRICT[name](A, 1), jax.jit(STRICT[name])(A, 1)):
            jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), found, want)
        with pytest.raises(ValueError, match="promotion"):
            jsp.bfs(A, 0).levels + X


@pytest.mark.parametrize("wrap", ["jit", "grad", "vmap"])
def test_functions_of_a_user_may_capture_what_is_traced(wrap):
    def loss(t):
        mine = jsp.semiring(jsp.monoid(jnp.add, 0.0), lambda a, b: a * b * t)
        return jsp.mxv(A, X, mine).sum()

    want = (A @ X).sum()
    if wrap == "jit":
        np.testing.assert_allclose(jax.jit(loss)(2.0), 2 * want, rtol=1e-5)
    elif wrap == "grad":
        np.testing.assert_allclose(jax.grad(loss)(2.0), want, rtol=1e-5)
    else:
        np.testing.assert_allclose(jax.vmap(loss)(jnp.arange(2.0)), [0, want], rtol=1e-5)


def test_numbers_of_every_kind_share_a_program():
    jsp.bfs(A, 0)
    before = PROGRAMS.traces.total()
    for source in (1, np.int32(1), np.int64(1), jnp.int32(1), jnp.asarray(1), np.uint8(1)):
        jsp.bfs(A, source)
    assert PROGRAMS.traces.total() == before


def test_whether_a_call_is_eager():
    seen = {"eager": is_eager()}

    def look(name):
        def fn(x):
            seen[name] = is_eager()
            return x

        return fn

    jax.jit(look("jit"))(1.0)
    jax.lax.scan(lambda c, _: (look("scan")(c), None), 0, None, length=1)
    jax.jit(jax.grad(look("jit of grad")))(1.0)
    jax.make_jaxpr(lambda: look("make_jaxpr")(0))()
    assert seen == dict.fromkeys(seen, False) | {"eager": True}


def test_an_operation_is_emitted_once_a_program():
    traced = []
    op = Operation("toy of emission", types=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))

    @op.register("loop")
    def _(x):
        traced.append(x.shape)
        return jax.lax.fori_loop(0, 3, lambda _, y: y + x, x)

    text = jax.jit(lambda x: op(op(op(x)) + 1) + op(x)).lower(jnp.ones(5)).as_text()
    assert text.count("stablehlo.while") == 1 and len(traced) == 1
    jax.jit(lambda x: op(x) * 2).lower(jnp.ones(5))
    assert len(traced) == 1, "another program uses the same trace"


def test_programs_are_bounded_and_give_back_what_they_took(monkeypatch):
    monkeypatch.setattr(PROGRAMS, "most", 8)
    op = Operation("toy of shapes", types=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype))
    op.register("double")(lambda x: 2 * x)
    for n in range(1, 30):
        np.testing.assert_array_equal(op(jnp.arange(n)), 2 * np.arange(n))
        assert PROGRAMS.traces.total() <= 8
    assert op(jnp.arange(3)).tolist() == [0, 2, 4]
    (key,) = [k for k in PROGRAMS.programs if k[0] == op._bound]
    jitted = weakref.ref(PROGRAMS.programs[key])
    gc.disable()  # a cycle of references would wait for it
    try:
        del PROGRAMS.programs[key]
        assert jitted() is None
    finally:
        gc.enable()


def test_an_export_holds_what_every_process_has():
    args = A, jnp.int32(0)
    for platforms in (("cpu",), ("cpu", "cuda"), ("tpu",)):
        exported = jax.export.export(jax.jit(CALLS["bfs"]), platforms=platforms)(*args)
        assert exported.platforms == platforms
    np.testing.assert_array_equal(
        jax.export.export(jax.jit(CALLS["sssp"]))(*args).call(*args), CALLS["sssp"](*args)
    )


def test_gradients_are_exact():
    with jax.enable_x64():
        B = A.astype(jnp.float64)
        x = X.astype(jnp.float64)
        check_grads(lambda d, x: B.with_data(d) @ x, (B.data, x), order=2, eps=1e-5)


MESHES = """
import jax, jax.numpy as jnp, numpy as np, jaxspv as jsp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

A = jsp.from_dense(np.eye(8, k=1, dtype=np.float32) * 2 + np.eye(8, k=3, dtype=np.float32))
sources = jnp.arange(8)
X = jnp.arange(64.0).reshape(8, 8)
auto = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
levels = np.stack([jsp.bfs(A, s).levels for s in range(8)])

def each(fn, **how):
    return jax.jit(jax.shard_map(jax.vmap(fn), mesh=auto, in_specs=P("d"), out_specs=P("d"), **how))

for vary in (False, True):
    found = each(lambda s: jsp.bfs(A, s).levels, check_vma=vary)(sources)
    np.testing.assert_array_equal(found, levels)
    far = each(lambda s: jsp.sssp(A, s).distances, check_vma=vary)(sources)
    np.testing.assert_array_equal(far, np.stack([jsp.sssp(A, s).distances for s in range(8)]))
    np.testing.assert_allclose(each(lambda x: A @ x, check_vma=vary)(X), X @ A.todense().T)

# The gradient of a loss over vectors that are spread: types that say what varies make it right.
def loss(d, x):
    return ((A.with_data(d) @ x) ** 2).sum()

want = jax.grad(lambda d: sum(loss(d, x) for x in X))(A.data)
def pull(d, x):
    return jax.grad(lambda d: jax.vmap(lambda x: loss(d, x))(x).sum())(d)
summed = jax.jit(jax.shard_map(pull, mesh=auto, in_specs=(P(), P("d")), out_specs=P()))
np.testing.assert_allclose(summed(A.data, X), want, rtol=1e-5)
def pull_paths(d, s):
    def total(d):
        far = jax.vmap(lambda s: jsp.sssp(A.with_data(d), s).distances)(s)
        return jnp.where(far < jnp.inf, far, 0).sum()
    return jax.grad(total)(d)
want = sum(pull_paths(A.data, s[None]) for s in sources)
summed = jax.jit(jax.shard_map(pull_paths, mesh=auto, in_specs=(P(), P("d")), out_specs=P()))
np.testing.assert_allclose(summed(A.data, sources), want, rtol=1e-5)

# An operand that is spread over an Auto mesh stays where it is.
spread = jax.device_put(X, NamedSharding(auto, P("d")))
program = jax.jit(lambda X: jax.vmap(lambda x: A @ x)(X)).lower(spread).compile()
np.testing.assert_allclose(program(spread), X @ A.todense().T)

# A mesh with explicit axes.
explicit = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Explicit,))
there = jax.device_put(X[0], NamedSharding(explicit, P()))
np.testing.assert_allclose(jax.jit(lambda x: A @ x)(there), A @ X[0])
print("done")
"""


@pytest.mark.once
def test_meshes():
    flags = "--xla_force_host_platform_device_count=4 " + os.environ.get("XLA_FLAGS", "")
    run = subprocess.run(
        [sys.executable, "-c", MESHES],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert run.stdout.endswith("done\n"), run.stderr[-3000:]
