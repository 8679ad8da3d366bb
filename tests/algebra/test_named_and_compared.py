"""Operators, monoids, semirings: pickled by name, compared by what they do, refused when made."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algebra import monoids, operators, semirings
from jaxspv.algebra.functions import canonical

pytestmark = pytest.mark.fast
KINDS = (jsp.BinaryOp, jsp.UnaryOp, operators.IndexUnaryOp, jsp.Monoid, jsp.Semiring)
BUILT_IN = [
    (module, name)
    for module in (operators, monoids, semirings)
    for name, value in vars(module).items()
    if isinstance(value, KINDS)
]
A = jsp.from_dense(np.array([[1.0, 2.0], [0.0, 4.0]], np.float32))


def test_those_of_the_library_are_pickled_by_name_and_copied_as_themselves():
    assert len(BUILT_IN) > 200
    for module, name in BUILT_IN:
        value = getattr(module, name)
        for protocol in (2, pickle.HIGHEST_PROTOCOL):
            assert pickle.loads(pickle.dumps(value, protocol)) is value, name
        assert copy.copy(value) is value and copy.deepcopy(value) is value, name
    rebuilt = jax.tree.map(lambda x: x, semirings.min_plus)
    assert rebuilt is not semirings.min_plus and rebuilt == semirings.min_plus
    assert pickle.loads(pickle.dumps(rebuilt)) is semirings.min_plus


def test_all_of_the_library_differ():
    distinct = {getattr(module, name) for module, name in BUILT_IN}
    assert len(distinct) == len({id(getattr(module, name)) for module, name in BUILT_IN})
    assert semirings.min_plus != semirings.max_plus and semirings.min_plus != "min_plus"


def hypot(x, y):
    return jnp.sqrt(x * x + y * y)


def scaled(x, y, factor):
    return x * y * jnp.sum(factor)


def test_those_of_the_user_are_equal_where_functions_and_parameters_are():
    def made(factor):
        return jsp.semiring(jsp.monoid(hypot, 0.0), jsp.BinaryOp(scaled, "scaled", (factor,)))

    mine = made(2.0)
    for other in (
        copy.deepcopy(mine),
        copy.copy(mine),
        pickle.loads(pickle.dumps(mine)),
        made(2.0),
    ):
        assert other == mine and hash(other) == hash(mine)
        np.testing.assert_array_equal(jsp.mxv(A, jnp.ones(2), other), jsp.mxv(A, jnp.ones(2), mine))
    assert made(3.0) != mine and made(jnp.arange(2.0)) != mine
    assert made(jnp.arange(2.0)) == made(np.arange(2.0, dtype=np.float32))
    assert jsp.BinaryOp(hypot) != jsp.BinaryOp(scaled)
    assert jax.jit(lambda t: made(t) == made(2.0))(2.0).item() is False  # a traced one is unknown
    lambdas = jsp.semiring(jsp.monoid(lambda x, y: hypot(x, y), 0.0), lambda x, y: x + y)
    assert copy.deepcopy(lambdas) == lambdas


def compiled(run):
    """How many programs the second call of a function compiles."""
    seen = []

    def listen(event, _, **__):
        if event.endswith("backend_compile_duration"):
            seen.append(event)

    run()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        run()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return len(seen)


LAMBDAS = {
    "apply": lambda: jsp.apply(A, lambda x: jnp.tanh(x) * 2),
    "select": lambda: jsp.select(A, lambda x, i, j, s: x > i + 1),
    "select by value": lambda: jsp.select(A, lambda x: x > 1),
    "ewise_add": lambda: jsp.ewise_add(A, A, lambda x, y: x * y + 1),
    "mxv": lambda: jsp.mxv(A, jnp.ones(2), jsp.semiring(monoids.plus, lambda x, y: x * y - 1)),
    "reduce": lambda: jsp.reduce(A, jsp.monoid(lambda x, y: x + y + x * y, 0.0)),
    "fixpoint": lambda: jsp.fixpoint(A, jnp.ones(2), update=lambda x, y, i, sums: y / 9),
}


@pytest.mark.parametrize("name", LAMBDAS)
def test_a_lambda_made_anew_compiles_nothing(name):
    assert compiled(LAMBDAS[name]) == 0


FACTOR, TABLE = 2.0, [2.0]


def test_a_lambda_that_reads_something_else_is_another():
    global FACTOR
    for factor in (2.0, 3.0, 3, -0.0, 0.0):
        assert jsp.apply(A, lambda x, f=factor: x * f).data.tolist()[1] == 2 * factor
        closed = jsp.apply(A, lambda x: x * factor)  # noqa: B023
        assert closed.data.tolist()[1] == 2 * factor
        FACTOR = TABLE[0] = factor
        assert jsp.apply(A, lambda x: x * FACTOR).data.tolist()[1] == 2 * factor
        assert jsp.apply(A, lambda x: x * TABLE[0]).data.tolist()[1] == 2 * factor
        weights = np.full(1, factor)
        assert jsp.apply(A, lambda x: x * weights[0]).data.tolist()[1] == 2 * factor  # noqa: B023

    def helper(x):
        return x * FACTOR

    for FACTOR in (4.0, 5.0):
        assert jsp.apply(A, lambda x: helper(x)).data.tolist()[1] == 2 * FACTOR
        assert jsp.apply(A, lambda x: (lambda y: y * FACTOR)(x)).data.tolist()[1] == 2 * FACTOR


def test_what_one_function_stands_for():
    def made(value):
        return lambda x: jnp.add(x, value)

    assert canonical(made(1)) is canonical(made(1))
    for one, other in ((1, 1.0), (1, True), (0.0, -0.0), (1, 2), ((1, 2), (1, 3)), ("a", "b")):
        assert canonical(made(one)) is not canonical(made(other))
    for unknown in (np.ones(2), [1], jnp.ones(2), hypot, jsp.monoids.plus, np.float32(1), object()):
        assert canonical(made(unknown)) is not canonical(made(unknown))


TUPLES = {
    "identity": lambda: jsp.monoid(lambda x, y: jnp.minimum(x, y), (np.inf, 0)),
    "terminal": lambda: jsp.monoid(jnp.gcd, 0, [1]),
    "pairs": lambda: jsp.monoid(lambda x, y: (x[0] + y[0], jnp.minimum(x[1], y[1])), 0.0),
    "dictionaries": lambda: jsp.monoid(lambda x, y: {"d": x["d"] + y["d"]}, 0.0),
    "vectors": lambda: jsp.monoid(lambda x, y: jnp.stack([x[0] + y[0], x[1] * y[1]]), 0.0),
    "matrices": lambda: jsp.monoid(lambda x, y: x @ y, 1.0),
    "mul of pairs": lambda: jsp.semiring(monoids.plus, lambda x, y: (x[0] * y[0], x[1] + y[1])),
    "mul that sums": lambda: jsp.Semiring(monoids.plus, lambda x, y: (x * y).sum(0)),
    "mul of records": lambda: jsp.Semiring(monoids.plus, lambda x, y: x.weight * y.weight),
    "mul times a vector": lambda: jsp.Semiring(monoids.plus, lambda x, y: x * y * jnp.ones(3)),
    "mul of length 1": lambda: jsp.Semiring(monoids.min_, lambda x, y: x * y * jnp.ones(1)),
    "op plus a vector": lambda: jsp.monoid(lambda x, y: x + y + jnp.zeros(3), 0.0),
}


@pytest.mark.parametrize("name", TUPLES)
def test_tuples_and_vectors_are_refused_when_made(name):
    with pytest.raises(TypeError, match=r"`(op|mul|identity|terminal)` must .*tuples or vectors"):
        TUPLES[name]()


def test_what_is_taken_for_a_number():
    assert jsp.monoid(hypot, jnp.zeros(())).identity == 0 == jsp.monoid(hypot, np.array(0)).identity
    assert jsp.semiring(monoids.bor, lambda x, y: x & y).mul.name == "<lambda>"
    assert jsp.semiring(monoids.plus, lambda x, y: 1).add is monoids.plus
    assert jsp.semiring(monoids.lor, lambda x, y: jnp.where(x > 0, y, ~y)).name
    fitted = jax.grad(lambda t: jsp.reduce(A, jsp.monoid(lambda x, y: x + y + t * x * y, 0.0)))
    assert np.isfinite(fitted(0.5))


ON_NUMBERS = {  # functions of two numbers that arrays do not fit, and what they stand for
    "Python number": (lambda x, y: 2.0, lambda x, y: 2.0 + 0 * x * y),
    "constant": (lambda x, y: jnp.float32(2), lambda x, y: 2.0 + 0 * x * y),
    "branch": (lambda x, y: jax.lax.cond(x > y, lambda: x, lambda: y), jnp.maximum),
    "dot product": (lambda x, y: jnp.sum(x * y), lambda x, y: x * y),
}


@pytest.mark.parametrize("add", [monoids.plus, monoids.min_, jsp.monoid(hypot, 0.0)])
@pytest.mark.parametrize("name", ON_NUMBERS)
def test_functions_of_two_numbers_serve_in_every_product(name, add):
    taken, same = (jsp.semiring(add, mul) for mul in ON_NUMBERS[name])
    x, X = jnp.array([1.0, 3.0], A.dtype), jnp.ones((2, 3), A.dtype)  # branches have one dtype
    v = jsp.vector_from_entries([1], np.array([3.0], A.dtype), 2)
    products = (
        lambda s: jsp.mxv(A, x, s),
        lambda s: jsp.vxm(x, A, s),
        lambda s: jsp.mxv(A, v, s).todense(),
        lambda s: jsp.mxm(A, A, s).todense(),
        lambda s: jsp.mxm(A, X, s),
    )
    for product in products:
        np.testing.assert_allclose(product(taken), product(same), rtol=1e-6)


def test_a_branch_in_the_addition():
    larger = jsp.monoid(lambda x, y: jax.lax.cond(x > y, lambda: x, lambda: y), -np.inf)
    assert jsp.mxv(A, jnp.ones(2), jsp.semiring(larger, jnp.multiply)).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("edges", [1, 2, 3])
def test_numbers_are_no_values_of_a_monoid_of_vectors(edges):
    """Of two edges neither: the shape (2,) of their products is no vector of each."""
    M = jsp.from_edges(np.arange(edges), np.arange(edges), shape=(3, 3))
    vectors = jsp.semiring(jsp.monoid(lambda x, y: x + y, np.zeros(2)), lambda x, y: x * y)
    for product in (lambda: jsp.mxv(M, jnp.ones(3), vectors), lambda: jsp.mxm(M, M, vectors)):
        with pytest.raises(TypeError, match=r"with leaves of shapes \[\(2,\)\]; got"):
            product()


def test_select_takes_a_function_of_values():
    want = [[0, 2], [0, 4]]
    for op in (lambda x: x > 1, lambda x, i, j, s: x > 1, jsp.UnaryOp(lambda x: x > 1)):
        assert jsp.select(A, op).todense().tolist() == want
    assert jsp.select(A, np.isfinite).todense().tolist() == A.todense().tolist()
    assert jsp.select(A, lambda *of: of[0] > 1).todense().tolist() == want
    with pytest.raises(TypeError, match="takes neither 4 nor 1 arguments"):
        jsp.select(A, lambda x, i: x > i)
    with pytest.raises(TypeError, match="must be an IndexUnaryOp"):
        jsp.select(A, operators.gt)


def test_what_differs_has_another_hash():
    """JAX's hash of a structure leaves static fields out: a table compared all with all."""
    operators = {op for op in vars(jsp.operators).values() if isinstance(op, jsp.BinaryOp)}
    assert len(operators) > 10
    assert len({hash(op) for op in operators}) == len(operators)
    assert hash(jsp.semirings.min_plus) != hash(jsp.semirings.max_plus)
