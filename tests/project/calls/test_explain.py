"""What `explain` names is what a program lowered for a platform holds, nested choices included."""

import dataclasses
import functools
import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algebra.semirings import min_plus
from jaxspv.formats import FORMATS, STRUCTURES
from jaxspv.native import bind

SCOPE = re.compile(r"([\w-]+)\.(cpu|xla)\.([A-Za-z_]+)")
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((12, 12)) < 0.3, RNG.integers(1, 9, (12, 12)), 0).astype(np.float32)
SYMMETRIC = DENSE + DENSE.T
X = jnp.arange(12.0)
SPARSE = jsp.vector_from_entries([1, 5], [1.0, 2.0], 12)
TALL = jnp.ones((12, 3))
HEADS = jnp.ones((12, 2, 4))
START = jnp.full(12, jnp.inf).at[0].set(0)
SOURCES = jnp.arange(3)


def fixpoint(A, **options):
    return jsp.fixpoint(A, START, min_plus, **options)


CALLS = {
    "mxv": lambda A: jsp.mxv(A, X),
    "mxv over (min, +)": lambda A: jsp.mxv(A, X, min_plus),
    "mxv with a mask": lambda A: jsp.mxv(A, X, mask=X > 3),
    "vxm": lambda A: jsp.vxm(X, A),
    "mxv by segments": lambda A: jsp.mxv(A, X, method="segments"),
    "vmap of mxv": lambda A: jax.vmap(lambda x: jsp.mxv(A, x))(jnp.stack([X, X])),
    "gradient of mxv": lambda A: jax.value_and_grad(lambda x: jsp.mxv(A, x).sum())(X),
    "spmspv": lambda A: jsp.mxv(A, SPARSE),
    "spmspv from the left": lambda A: jsp.vxm(SPARSE, A, min_plus),
    "mxm": lambda A: jsp.mxm(A, A, nse=144),
    "masked mxm": lambda A: jsp.mxm(A, A, mask=jsp.structure(A), nse=144),
    "mxm by sorting": lambda A: jsp.mxm(A, A, nse=144, method="sort"),
    "ewise_add": lambda A: jsp.ewise_add(A, A),
    "ewise_mult": lambda A: jsp.ewise_mult(A, A),
    "apply": lambda A: jsp.apply(A, jnp.negative),
    "select": lambda A: jsp.select(A, jsp.operators.tril),
    "reduce": lambda A: jsp.reduce(A, axis=1),
    "transpose": lambda A: jsp.transpose(A),
    "extract": lambda A: jsp.extract(A, jnp.arange(3), jnp.arange(4)),
    "kron": lambda A: jsp.kron(A, A, nse=2000),
    "bfs": lambda A: jsp.bfs(A, 0),
    "bfs without parents": lambda A: jsp.bfs(
        A, 0, parents=False, until=jsp.until.max_iterations(2)
    ),
    "bfs of one kind of parents": lambda A: jsp.bfs(A, 0, deterministic=True),
    "bfs from several": lambda A: jsp.bfs(A, SOURCES),
    "bfs by tiles": lambda A: jsp.bfs(A, 0, format="bittiled"),
    "sssp": lambda A: jsp.sssp(A, 0),
    "sssp by Bellman and Ford": lambda A: jsp.sssp(A, 0, method="bellman_ford"),
    "sssp until": lambda A: jsp.sssp(A, 0, until=jsp.until.reached(3)),
    "sssp from several": lambda A: jsp.sssp(A, SOURCES),
    "soft_sssp": lambda A: jsp.soft_sssp(A, 0, temperature=0.1),
    "pagerank": lambda A: jsp.pagerank(A),
    "fixpoint": lambda A: fixpoint(A, monotone=True),
    "fixpoint of all elements": lambda A: fixpoint(A, until=jsp.until.max_iterations(3)),
    "connected_components": lambda A: jsp.connected_components(A),
    "triangle_count": lambda A: jsp.triangle_count(A),
    "spmm": lambda A: A @ TALL,
    "spmm over (max, +)": lambda A: jsp.mxm(A, TALL, jsp.semirings.max_plus),
    "gradient of spmm": lambda A: jax.value_and_grad(lambda X: (A @ X).sum())(TALL),
    "sddmm": lambda A: jsp.sddmm(A, TALL, TALL),
    "softmax": lambda A: jsp.learning.softmax(A),
    "attention": lambda A: jsp.learning.attention(A, HEADS, HEADS, HEADS),
    "attention with a bias": lambda A: jsp.learning.attention(
        A, HEADS, HEADS, HEADS, jnp.ones(A.nse)
    ),
    "gradient of attention": lambda A: jax.grad(
        lambda Q: jsp.learning.attention(A, Q, HEADS, HEADS).sum()
    )(HEADS),
    "aggregate": lambda A: jsp.learning.aggregate(A, "max"),
}
ALGORITHMS = {  # operands of those that take more than a graph
    "maximal_independent_set": lambda A: jsp.maximal_independent_set(jax.random.key(0), A),
    "k_truss": lambda A: jsp.k_truss(A, 3),
    "k_core": lambda A: jsp.k_core(A, 2),
    "similarity": lambda A: jsp.similarity(A, SOURCES, SOURCES),
    "astar": lambda A: jsp.astar(A, 0, 5, jnp.zeros(12)),
    "has_path": lambda A: jsp.has_path(A, 0, 5),
    "spanning_tree": lambda A: jsp.spanning_tree(A, 0),
    "modularity": lambda A: jsp.modularity(A, jnp.zeros(12, jnp.int32)),
    "k_shortest_paths": lambda A: jsp.k_shortest_paths(A, 0, 5, 3),
}
SEEN = {call.split()[0] for call in CALLS}
CHOOSING = {  # the public functions that choose a form
    name: function
    for name, function in vars(jsp).items()
    if inspect.isfunction(function) and "backend" in inspect.signature(function).parameters
}
for name, function in CHOOSING.items():  # one that is new joins unasked
    if name not in SEEN | {"export"}:
        ALGORITHMS.setdefault(name, function)
GRAPHS = {
    **{name: (lambda name=name: jsp.from_dense(SYMMETRIC, format=name)) for name in FORMATS},
    "prepared": lambda: jsp.prepare(
        jsp.from_dense(SYMMETRIC), for_=("bfs", "sssp", "pagerank", "fixpoint", "mxv", "vxm")
    ),
    "directed": lambda: jsp.prepare(jsp.from_dense(DENSE), for_=("bfs", "sssp")),
}
PLAIN = ("ewise", "apply", "select", "reduce", "transpose", "extract", "kron", "mxm", "masked")


def wants(call, graph):
    """Whether the call takes this graph at all."""
    if graph in ("prepared", "directed") and call.startswith(PLAIN):
        return False  # operations on matrices
    if graph == "directed" and call == "triangle_count":
        return False  # undirected graphs alone
    return not (graph in STRUCTURES and call in ("mxm by sorting",))


CASES = [(c, g) for c in CALLS for g in GRAPHS if wants(c, g)]
CASES += [(name, "csr") for name in sorted(ALGORITHMS)]
CALLS |= ALGORITHMS


def labels(plans, platform):
    """(operation, backend, method) of every choice that a program for the platform meets."""
    found = set()
    for plan in plans:
        impl = plan.on(platform)
        if impl is not None:
            inner = next((plans for form, plans in plan.inside if form is impl), ())
            if not any(p.op == f"{plan.op} under vmap" for p in inner):  # a kernel without a rule
                found.add((plan.op.replace(" ", "_"), impl.backend, impl.name.replace(" ", "_")))
        for outer, inner in plan.inside:
            if outer is None or outer is impl:
                found |= labels(inner, platform)
    return found


def lowered(fn, A, platform):
    """The same of a program's text: the scopes of forms, and whether it holds a kernel."""
    program = jax.jit(fn).trace(A).lower(lowering_platforms=(platform,))
    if platform == "cuda":
        assert not empty_conditions(program.compiler_ir("stablehlo"))
    text = program.as_text(debug_info=True)
    return set(SCOPE.findall(text)), "mosaic_gpu" in text


MOVES = {"constant", "optimization_barrier", "reshape", "convert", "broadcast_in_dim", "return"}


def empty_conditions(module):
    """Where a loop's condition computes nothing: in command buffers its results are wrong."""
    functions = {f.attributes["sym_name"].value: f for f in module.body.operations}

    def computes(block):
        for op in block.operations:
            name = op.operation.name
            if name == "func.call":
                called = functions[op.attributes["callee"].value]
                if computes(called.regions[0].blocks[0]):
                    return True
            elif name.split(".")[-1] not in MOVES:
                return True
        return False

    found = []

    def walk(op):
        for block in (block for region in op.regions for block in region.blocks):
            for inner in block.operations:
                if inner.operation.name == "stablehlo.while":
                    if not computes(inner.regions[0].blocks[0]):
                        found.append(str(inner.location))
                walk(inner)

    walk(module.operation)
    return found


def test_a_condition_that_computes_nothing_is_found():
    def loops(condition):
        return lambda x: jax.lax.while_loop(condition, lambda s: (s[0] + 1, s[0] > 5), (x, x < 0))

    for condition, number in ((lambda s: s[1], 1), (lambda s: s[0] < 3, 0)):
        program = jax.jit(loops(condition)).trace(1).lower(lowering_platforms=("cuda",))
        assert len(empty_conditions(program.compiler_ir("stablehlo"))) == number


@pytest.mark.parametrize(("call", "graph"), CASES)
def test_a_lowered_program_holds_what_was_explained(call, graph):
    fn, A = CALLS[call], GRAPHS[graph]()
    plans = [jsp.explain(jax.jit(lambda A: fn(A)), A)]  # traced, as in a program of a user's
    for platform in ("cpu", "cuda"):
        named = labels(plans, platform)
        held, kernels = lowered(fn, A, platform)
        assert held <= {label for label in named if label[1] != "pallas"}, (held, str(plans[0]))
        assert kernels == any(label[1] == "pallas" for label in named), str(plans[0])
        outer = labels([_without_inner(plan) for plan in plans], platform)
        if call.startswith("gradient"):  # `grad` transposes what has a transpose of its own
            outer = {label for label in outer if not label[0].startswith("tangent_of")}
        assert {label for label in outer if label[1] != "pallas"} <= held, (held, str(plans[0]))


def _without_inner(plan):
    kept = tuple((impl, plans) for impl, plans in plan.inside if impl is None)
    return dataclasses.replace(plan, inside=kept)


def test_names_are_explained_and_wrong_ones_refused():
    assert len(CHOOSING) > 20
    assert str(jsp.explain("core_number", GRAPHS["csr"]())).startswith("core_number: ")
    for wrong in ("no_such", "COO", 3):
        with pytest.raises(ValueError, match="`op` must be a function"):
            jsp.explain(wrong)


def test_an_eager_call_is_explained_as_it_runs():
    """Concrete operands stay concrete: the choice by values is the one of the call itself."""
    A = jsp.from_dense(SYMMETRIC)
    usual = "sort" if bind.refused() else "gustavson"
    assert jsp.explain("mxm", A, A).on("cpu").name == usual
    G = jsp.prepare(A, for_="pagerank")
    usual = "pull" if bind.refused() else "native"
    assert jsp.explain("pagerank", G).on("cpu").name == usual


def test_a_function_of_ones_own_is_explained():
    def both(A):
        return jsp.bfs(A, 0).levels, jsp.mxv(A, X)

    plan = jsp.explain(both, jsp.from_dense(SYMMETRIC))
    assert {inner.op for _, plans in plan.inside for inner in plans} >= {"bfs", "spmv"}


NEEDS = {  # operands of public functions, beside a graph
    "mxv": lambda f, A, **o: f(A, X, **o),
    "vxm": lambda f, A, **o: f(X, A, **o),
    "mxm": lambda f, A, **o: f(A, A, nse=144, **o),
    "sddmm": lambda f, A, **o: f(A, TALL, TALL, **o),
    "similarity": lambda f, A, **o: f(A, SOURCES, SOURCES, **o),
    "k_core": lambda f, A, **o: f(A, 2, **o),
    "k_shortest_paths": lambda f, A, **o: f(A, 0, 5, 2, **o),
    "k_truss": lambda f, A, **o: f(A, 3, **o),
    "fixpoint": lambda f, A, **o: f(A, START, min_plus, **o),
    "attention": lambda f, A, **o: f(A, HEADS, HEADS, HEADS, **o),
    "bfs": lambda f, A, **o: f(A, SOURCES, **o),
    "sssp": lambda f, A, **o: f(A, SOURCES, **o),
    "spanning_tree": lambda f, A, **o: f(A, SOURCES, **o),
    "betweenness_centrality": lambda f, A, **o: f(A, SOURCES, weighted=True, **o),
    "maximal_independent_set": lambda f, A, **o: f(jax.random.key(0), A, **o),
}
ASKED = {name: f for name, f in CHOOSING.items() if name != "export"}
ASKED |= {"attention": jsp.learning.attention}


LANES = {(name, True) for name in ("bfs", "sssp", "fixpoint", "mxv")}


@pytest.mark.parametrize(
    ("name", "lanes"), sorted({(name, False) for name in ASKED} | LANES), ids=str
)
def test_a_backend_reaches_the_operations_inside(name, lanes):
    """Whatever a form calls takes the backend too, also where its rule for vmap calls it again."""
    call = functools.partial(NEEDS.get(name, lambda f, A, **o: f(A, **o)), ASKED[name])

    def one(A):
        return call(A, backend="xla")

    def several(A):
        return jax.vmap(lambda data: one(dataclasses.replace(A, data=data)))(
            jnp.stack([A.data, A.data])
        )

    plan = jsp.explain(jax.jit(several if lanes else one), jsp.from_dense(SYMMETRIC))
    assert {label[1] for label in labels([plan], "cpu")} == {"xla"}, str(plan)


def test_a_backend_reaches_gathered_sources():
    """Two ways to several sources; that of C++ and that of loops are asked for by name too."""
    A = jsp.from_dense(SYMMETRIC)
    for backend in ("cpu", "xla"):
        for fn in (
            lambda A: jsp.bfs(A, SOURCES, backend=backend),
            lambda A: jax.vmap(lambda s: jsp.bfs(A, s, backend=backend))(SOURCES),
            lambda A: jax.vmap(lambda s: jsp.bfs(A, s + SOURCES, backend=backend))(SOURCES),
        ):
            used = labels([jsp.explain(fn, A)], "cpu")
            assert used and {label[1] for label in used} == {backend}, used
            held, _ = lowered(fn, A, "cpu")
            assert {label[1] for label in held} == {backend}, held
