"""Arguments of a wrong type, over the whole interface: one error that names the argument."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

A = jsp.from_dense(np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0], [0.0, 4.0, 5.0]]))
X, ONES = jnp.arange(3.0), jnp.ones((3, 2))
GRID = jsp.generators.grid2d(jax.random.key(0), 2)
WRONG = {"text": "x", "object": object(), "dict": {}, "ragged": [[1], [2, 3]]}

WRITES = {
    "apply": (A, jsp.operators.abs),
    "diag": (A,),
    "ewise_add": (A, A),
    "ewise_mult": (A, A),
    "ewise_union": (A, A),
    "extract": (A,),
    "kron": (A, A),
    "mxm": (A, A),
    "mxv": (A, X),
    "reduce": (A,),
    "select": (A, jsp.operators.tril),
    "transpose": (A,),
    "vxm": (X, A),
}
OTHERS: dict[str, Any] = {
    "apply": (A, jsp.operators.rowindex, {"thunk"}),
    "bfs": (A, 0, {"backend", "method", "parents"}),
    "choose_format": ({"A"},),
    "closure": (A, {"star"}),
    "eigenvector_centrality": (A, {"start", "tol", "max_iterations"}),
    "ewise_union": (A, A, {"left_default", "right_default"}),
    "fixpoint": (A, X, {"update", "backend"}),
    "from_dense": (ONES, {"fill", "nse"}),
    "from_edges": ([0, 1], [1, 2], {"values", "nse"}),
    "katz_centrality": (A, {"alpha", "beta", "tol"}),
    "label_propagation": (A, {"max_iterations", "backend"}),
    "mxv": (A, {"x"}),
    "pad": (A, {"n", "nse"}),
    "pagerank": (A, {"damping", "tol", "personalization", "min_iterations", "max_iterations"}),
    "prepare": (A, {"for_"}),
    "soft_sssp": (A, 0, {"temperature"}),
    "sssp": (A, 0, {"delta", "max_steps", "method"}),
    "vector_from_dense": (X, {"fill", "nse"}),
    "vector_from_entries": ([0, 1], [1.0, 2.0], 3, {"nse"}),
}
FINE = {("text", "for_"), ("dict", "for_"), ("text", "parents"), ("object", "parents")}
FINE |= {("object", "backend"), ("object", "method")}  # words: an error of their own
BY_NAME = [
    (f, given, name, wrong)
    for f, (*given, names) in OTHERS.items()
    for name in sorted(names)
    for wrong in WRONG
    if (wrong, name) not in FINE
]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["accum", "mask", "nse", "out", "replace"])
@pytest.mark.parametrize("function", WRITES)
def test_options_of_the_write_rule_are_named(function, name, wrong):
    how = {name: WRONG[wrong], **({"axis": 1} if function == "reduce" else {})}
    with pytest.raises((TypeError, ValueError), match=f"`{name}`"):
        getattr(jsp, function)(*WRITES[function], **how)


@pytest.mark.parametrize(("function", "given", "name", "wrong"), BY_NAME)
def test_arguments_are_named(function, given, name, wrong):
    with pytest.raises((TypeError, ValueError), match=f"`{name}`"):
        getattr(jsp, function)(*given, **{name: WRONG[wrong]})


@pytest.mark.parametrize("name", ["accum", "out", "nse", "replace"])
def test_a_scalar_reduction_checks_options_without_use_too(name):
    with pytest.raises((TypeError, ValueError), match=f"`{name}`"):
        how: Any = {name: "x"}
        jsp.reduce(A, **how)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_number_is_no_vector_to_write_into(axis):
    with pytest.raises(ValueError, match=r"`out` must have the shape \(3,\)"):
        jsp.reduce(A, axis=axis, out=300)
    np.testing.assert_array_equal(
        jsp.reduce(A, axis=axis, accum="plus", out=[1, 2, 3]),
        np.array([1, 2, 3]) + np.asarray(A.todense()).sum(axis),
    )


@pytest.mark.parametrize("function", ["mxv", "vxm", "sddmm"])
def test_texts_are_no_numbers(function):
    texts = np.array(["a", "b", "c"])
    given = {"mxv": (A, texts), "vxm": (texts, A), "sddmm": (A, texts, ONES)}[function]
    name = "X" if function == "sddmm" else "x"
    with pytest.raises(TypeError, match=f"`{name}` must be a number or an array of numbers"):
        getattr(jsp, function)(*given)


UNTYPED: Any = jsp  # its calls take wrong types
WITH_A_WAY_ON: list[tuple[Callable[[], Any], str]] = [
    (lambda: UNTYPED.has_path(A, [0, 1], 2), "`source` must be one vertex"),
    (lambda: UNTYPED.astar(A, 0, 9, jnp.zeros(3)), "`target` must lie in"),
    (lambda: UNTYPED.diameter(GRID, []), "`start` must be one vertex"),
    (lambda: UNTYPED.diameter(GRID, max_searches=ONES), "`max_searches`"),
    (lambda: UNTYPED.eccentricity(A, [9]), "`vertices` must lie in"),
    (lambda: UNTYPED.betweenness_centrality(A, [9]), "`sources` must lie in"),
    (lambda: UNTYPED.graphblas.get_element(A, 0), "`j` must be one integer"),
    (lambda: UNTYPED.learning.to_edge_index(object()), "`A` must be a sparse matrix"),
    (lambda: UNTYPED.from_edges(["a"], ["b"]), "`senders` must be integers.*from_table"),
    (lambda: UNTYPED.to_networkx(A, ["a", "b", "c"]), r"`labels` must be `Labels\(names\)`"),
    (lambda: UNTYPED.fixpoint(A, np.arange(3), "min_plus"), "begin with `x0.astype"),
    (lambda: UNTYPED.select(A, "trill"), "`op` must be an IndexUnaryOp"),
    (lambda: UNTYPED.config.set_num_threads("a"), "`count` must be an integer"),
    (lambda: UNTYPED.learning.block_diag([A], format="a"), "`format` must be one of"),
    (lambda: UNTYPED.graphblas.build(([0], [1]), [1.0], (2, 2), dup=3), "`dup` must be"),
    (lambda: UNTYPED.write_mtx("nowhere.mtx", 5), "`A` must be a matrix"),
    (lambda: UNTYPED.bfs(ONES, 0), "bfs needs a sparse matrix.*from_dense"),
]


@pytest.mark.parametrize(("call", "message"), WITH_A_WAY_ON)
def test_errors_name_the_argument_and_a_way_on(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


ARITY: list[tuple[Callable[[], Any], str]] = [
    (lambda: UNTYPED.apply(A, lambda a, b: a), "op"),
    (lambda: UNTYPED.apply(A, lambda: 1), "op"),
    (lambda: UNTYPED.apply(A, lambda a: a, left=1.0), "op"),
    (lambda: UNTYPED.ewise_add(A, A, lambda a: a), "op"),
    (lambda: UNTYPED.ewise_add(A, A, out=A, accum=lambda a, b, c: a), "accum"),
    (lambda: UNTYPED.select(A, lambda a, b: a), "op"),
    (lambda: UNTYPED.semiring(jsp.monoids.plus, lambda a: a), "mul"),
    (lambda: UNTYPED.monoid(lambda a: a, 0), "op"),
    (lambda: UNTYPED.fixpoint(A, X, "min_plus", update=lambda old, y: y), "update"),
    (lambda: UNTYPED.fixpoint(A, X, sums={"s": lambda: 1}), r"sums\['s'\]"),
    (lambda: UNTYPED.closure(A, star=lambda a, b: a), "star"),
    (lambda: UNTYPED.learning.attention(A, ONES, ONES, ONES, score=lambda q: q), "score"),
]


@pytest.mark.parametrize(("call", "name"), ARITY)
def test_functions_of_another_arity_are_named(call, name):
    with pytest.raises(TypeError, match=f"`{name}` must be a function of"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda M: jsp.closure(M, start=0).x,
        lambda M: jsp.pad(M, n=5).todense(),
        lambda M: jsp.io.to_table(M)["weight"],
        lambda M: jsp.learning.to_edge_index(M)[1],
    ],
)
def test_matrices_of_scipy_serve(call):
    np.testing.assert_array_equal(call(A.to_scipy()), call(A))


def test_select_takes_a_name():
    np.testing.assert_array_equal(
        jsp.select(A, "tril", -1).todense(), np.tril(np.asarray(A.todense()), -1)
    )
