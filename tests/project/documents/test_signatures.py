"""Public signatures tell the shapes of their arrays, in jaxtyping's words, and results have
them."""

import ast
import inspect
import pathlib
import re
import sys
import typing

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv import shapes

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "docs/_ext"))
import public_api  # noqa: E402

PUBLIC = public_api.public(jsp)
CLASSES = {name: cls for name, cls in PUBLIC.items() if inspect.isclass(cls)}
FUNCTIONS = {
    name: value
    for name, value in PUBLIC.items()
    if inspect.isfunction(value) and value.__module__.startswith("jaxspv")
}
# Parameters that are arrays wherever they occur; matrices and vectors of several kinds are not.
ARRAYS = set(
    "x x0 source values senders receivers indices key damping tol temperature personalization "
    "delta max_iterations min_iterations node k fill thunk edge_index edge_attr Q K V X Y".split()
)
ANY = {("diag", "k")}  # a Python integer
pytestmark = pytest.mark.fast


def names_of(module):
    """The names of a module as type checkers see them."""
    names = dict(vars(module))
    names |= {k: v for k, v in vars(shapes).items() if names.get(k) is typing.Any}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            exec(compile(ast.Module(node.body, []), module.__file__, "exec"), names)
    return names


@pytest.fixture(scope="module", autouse=True)
def aliases():
    """`jaxspv.shapes` as type checkers see it."""
    known = names_of(shapes)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in known.items():
            patch.setattr(shapes, name, value, raising=False)
        yield


def hints_of(owner, annotated):
    bases = owner.__mro__ if inspect.isclass(owner) else (owner,)
    names = {}
    for base in reversed(bases):
        if base.__module__.startswith("jaxspv"):
            names |= names_of(sys.modules[base.__module__])
    return typing.get_type_hints(annotated, names)


def without_shape(hint):
    """Whether a hint holds an array of which nothing is told."""
    if hint in (jax.Array, np.ndarray):
        return True
    return any(without_shape(part) for part in typing.get_args(hint))


def test_the_walk_sees_bare_arrays():
    assert without_shape(tuple[jax.Array, int]) and without_shape(jax.Array | None)
    assert not without_shape(jaxtyping.Int[jax.Array, " n"] | None)


def test_nothing_at_run_time_needs_jaxtyping():
    for path in pathlib.Path(jsp.__file__).parent.rglob("*.py"):
        assert not re.search(r"^(from|import) jaxtyping", path.read_text(), re.MULTILINE), path


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    fn = FUNCTIONS[name]
    for parameter, hint in hints_of(fn, fn).items():
        assert not without_shape(hint), f"{parameter}: {hint}"
        if parameter in ARRAYS and (name.rpartition(".")[2], parameter) not in ANY:
            assert hint is not typing.Any, f"{parameter} is an array of some shape"


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    cls = CLASSES[name]
    for base in cls.__mro__[:-1]:
        if not base.__module__.startswith("jaxspv"):
            continue
        for field, hint in hints_of(base, base).items():
            assert not without_shape(hint), f"{base.__name__}.{field}: {hint}"
        for member, value in vars(base).items():
            value = getattr(value, "__func__", getattr(value, "fget", value))
            if inspect.isfunction(value) and not member.startswith("_"):
                for parameter, hint in hints_of(base, value).items():
                    assert not without_shape(hint), f"{base.__name__}.{member}, {parameter}"


def holds(result):
    """Whether the fields of a result are what their annotations say, all in one."""
    hints = {k: h for k, h in hints_of(type(result), type(result)).items() if hasattr(result, k)}
    with jaxtyping.jaxtyped("context"):
        for field, hint in hints.items():
            value = getattr(result, field)
            if isinstance(value, jax.Array):
                kinds = typing.get_args(hint) or (hint,)
                assert any(isinstance(value, kind) for kind in kinds), f"{field}: {value.shape}"
    return True


@pytest.mark.parametrize("source", [0, [0, 2]])
def test_results_of_searches(source):
    A = jsp.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0], shape=(4, 4))
    for result in (jsp.bfs(A, source), jsp.sssp(A, source), jsp.soft_sssp(A, source, 0.5)):
        assert holds(result)


def test_results_of_the_others():
    A = jsp.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0], shape=(4, 4))
    x = jsp.vector_from_entries([1, 2], [2.0, 3.0], 4)
    tiled = jsp.TiledVector.from_sparse(x), jsp.BitVector.from_sparse(x)
    for result in (
        *(A.asformat(format) for format in ("csr", "csc", "coo", "tiled", "bittiled")),
        *(x, *tiled, jsp.prepare(A), jsp.pagerank(A), jsp.connected_components(A)),
        *(
            jsp.triangle_count(jsp.ewise_add(A, A.T)),
            jsp.fixpoint(A, jnp.ones(4), until=jsp.until.max_iterations(2)),
        ),
    ):
        assert holds(result)
    bits = A.asformat("bittiled")
    assert holds(bits.by_row)
