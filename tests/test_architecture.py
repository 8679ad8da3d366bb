"""The tree is the architecture: imports go downwards, names are documented, files stay short."""

import ast
import functools
import inspect
import pathlib
import re

import pytest

import jaxspv

ROOT = pathlib.Path(__file__).parent.parent
PACKAGES = sorted([*ROOT.glob("jaxspv/**/*.py"), *ROOT.glob("pallas_kernels/**/*.py")])
OTHERS = sorted(p for d in ("tests", "benchmarks", "examples") for p in ROOT.glob(f"{d}/**/*.py"))

# From the ground up; a module may import its own layer and those before it. A module that is not
# named here joins the layer of the highest one it imports.
LAYERS = (
    ("_core",),
    ("algebra", "until"),
    ("formats",),
    ("graph", "construct"),
    ("generators", "interop", "io"),
    ("sharding",),
    ("ops",),
    ("algorithms",),
    ("learning", "_on_mesh"),
    ("explaining", "exporting", "checking", "autodiff", "verify", "plot"),
    ("cli", "networkx_backend", "__init__", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def dotted(path):
    """The name under which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def for_types_only(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)  # what imports may stand in


@functools.cache
def parsed(path):
    return ast.parse(path.read_text())


@functools.cache
def imports_of(path):
    """Absolute dotted names of everything a file imports, inside functions too."""
    package, names = path.relative_to(ROOT).parts[:-1], []
    open_nodes = [parsed(path)]
    while open_nodes:
        node = open_nodes.pop()
        if not for_types_only(node):
            open_nodes += [
                child for child in ast.iter_child_nodes(node) if isinstance(child, BLOCKS)
            ]
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            names += [f"{stem}.{alias.name}" for alias in node.names]
    return names


MODULES = {dotted(path): path for path in PACKAGES}


@functools.cache
def needs(name):
    """The modules of this project that a module imports directly."""
    found = set()
    for target in imports_of(MODULES[name]):
        while target and target not in MODULES:  # a name inside a module
            target = target.rpartition(".")[0]
        found.add(target)
    return frozenset(found - {"", name})


def named_layer(name):
    """The level that LAYERS gives a module of jaxspv, or None."""
    parts = name.split(".")
    return LEVEL.get(parts[1] if len(parts) > 1 else "__init__")


@functools.cache
def height(name):
    """The highest layer that a module reaches by its imports, through unnamed modules too."""
    below = [
        named_layer(m) if named_layer(m) is not None else height(m)
        for m in needs(name)
        if m.startswith("jaxspv")
    ]
    return max(below, default=0)


def relative(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*PACKAGES, *OTHERS], ids=relative)
def test_a_file_says_what_it_is_for_and_stays_short(path):
    lines = path.read_text().splitlines()
    assert lines and lines[0].startswith('"""') and len(lines[0]) > 20
    assert len(lines) <= 400, f"{len(lines)} lines"


FOLDERS = sorted({path.parent for path in [*PACKAGES, *OTHERS] if path.parent.name != "examples"})
MOST_FILES = 12  # beside `__init__.py`; the examples are one list, read by its numbers


@pytest.mark.parametrize("folder", FOLDERS, ids=relative)
def test_a_folder_holds_no_more_than_a_dozen_files(folder):
    files = sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
    assert len(files) <= MOST_FILES, f"{len(files)} files: {files}"


@pytest.mark.parametrize("path", PACKAGES, ids=relative)
def test_imports_go_downwards(path):
    name = dotted(path)
    assert not [n for n in imports_of(path) if n.startswith(("jax._src", "tests", "benchmarks"))]
    if name.startswith("pallas_kernels"):
        assert not [n for n in needs(name) if n.startswith("jaxspv")], "kernels know arrays only"
    elif named_layer(name) is not None:
        above = {
            m
            for m in needs(name)
            if m.startswith("jaxspv")
            and (named_layer(m) if named_layer(m) is not None else height(m)) > named_layer(name)
        }
        assert not above, f"{sorted(above)} lie above {name}"


def test_imports_have_no_cycle():
    done, path = set(), []

    def visit(name):
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            path.append(name)
            for other in sorted(needs(name)):
                visit(other)
            done.add(path.pop())

    for name in MODULES:
        visit(name)


def test_layers_name_what_exists():
    """So that a renamed module does not leave the order unseen."""
    names = {name.split(".")[1] for name in MODULES if name.startswith("jaxspv.")}
    assert set(LEVEL) - {"__init__"} <= names


def written(value):
    """The docstring somebody wrote: not the signature that dataclasses and named tuples make."""
    text = inspect.getdoc(value) or ""
    made = inspect.isclass(value) and text.startswith(f"{value.__name__}(")
    return "" if made else text


DOOR = (
    *("automata", "config", "generators", "graphblas", "io", "learning", "results", "sharding"),
    "until",
)


def names_of(module):
    """What a module offers: `__all__`, else what has no underscore and is no module."""
    listed = [k for k, v in vars(module).items() if not (k[0] == "_" or inspect.ismodule(v))]
    return getattr(module, "__all__", listed)


PUBLIC = {k: v for k, v in vars(jaxspv).items() if not k.startswith("_")}
PUBLIC |= {
    f"{module}.{name}": getattr(getattr(jaxspv, module), name)
    for module in DOOR
    for name in names_of(getattr(jaxspv, module))
}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_names_and_their_methods_are_documented(name):
    value = PUBLIC[name]
    if not inspect.ismodule(value) and not callable(value):
        value = type(value)  # a constant: its class tells
    assert written(value), f"{name} has no docstring"
    if inspect.isclass(value) and value.__module__.startswith("jaxspv"):
        fields = {*getattr(value, "__dataclass_fields__", ()), *getattr(value, "_fields", ())}
        methods = {m for m in vars(value) if not m.startswith("_")} - fields
        bare = {m for m in methods if not written(getattr(value, m))}
        bare = {
            m
            for m in bare
            if callable(getattr(value, m)) or isinstance(inspect.getattr_static(value, m), property)
        }
        assert not bare, f"{name}: no docstring on {sorted(bare)}"


RESULTS = {k for k, v in PUBLIC.items() if inspect.isclass(v) and issubclass(v, tuple)}
EXAMPLES = {k for k, v in PUBLIC.items() if inspect.isclass(v) or inspect.isfunction(v)} - RESULTS
OPERATIONS = {
    k
    for k, v in PUBLIC.items()
    if inspect.isfunction(v) and v.__module__.startswith(("jaxspv.ops.", "jaxspv.learning."))
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_public_names_have_an_example_that_runs(name):
    """`--doctest-modules` runs it. Results are shown by the functions that return them."""
    assert inspect.getmodule(PUBLIC[name]).__name__.startswith("jaxspv.")
    assert ">>> " in inspect.getdoc(PUBLIC[name])


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_operations_say_all_there_is_to_know(name):
    """The formula or what it does, arguments, result, errors; the names of all its parameters."""
    text = inspect.getdoc(PUBLIC[name])
    for part in ("Args:", "Returns:", "Raises:"):
        assert f"\n{part}\n" in text, f"{name} has no {part}"
    arguments = text.split("Args:")[1].split("Returns:")[0]
    assert len(OPERATIONS) > 14
    for parameter in inspect.signature(PUBLIC[name]).parameters:
        assert re.search(rf"\b{parameter}\b", arguments), f"{name}: `{parameter}`"


def test_everything_is_exported_by_name():
    """`from jaxspv import x` works for checkers: each name is re-exported as itself."""
    assert len(PUBLIC) > 40
    for module in (jaxspv, *(getattr(jaxspv, name) for name in DOOR)):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom) and not hasattr(module, "__all__"):
                names = [a for a in node.names if not (a.asname or "").startswith("_")]
                assert all(alias.asname == alias.name for alias in names)


def test_the_top_level_is_what_is_typed_in_the_first_hour():
    """About a hundred names; the others are in the submodules."""
    top = [name for name in names_of(jaxspv) if not name.startswith("_")]
    assert 80 < len(top) <= 106, f"{len(top)} names"


MOST_PARAMETERS = 8
WIDE = {  # public calls alone, whose options are keywords: why
    "shape of GraphBLAS: mask, accum, out, replace": {
        *("jaxspv.apply", "jaxspv.ewise_union", "jaxspv.mxm", "jaxspv.mxv", "jaxspv.vxm")
    },
    "one keyword for each choice that a user has": {
        *("jaxspv.bfs", "jaxspv.sssp", "jaxspv.fixpoint", "jaxspv.from_edges", "jaxspv.plot.draw"),
        *("jaxspv.generators.rmat", "jaxspv.learning.attention", "jaxspv.read_edgelist"),
        "jaxspv.io.from_table",
        *(f"jaxspv.sharding.shard_{what}" for what in ("edges", "file", "rmat")),
    },
}


@functools.cache
def nodes_of(path):
    return list(ast.walk(parsed(path)))


def wide_functions(path):
    """Names of functions with more parameters than `MOST_PARAMETERS`, without self."""
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef):
            a = node.args
            names = [
                p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p
            ]
            if len([name for name in names if name not in ("self", "cls")]) > MOST_PARAMETERS:
                yield f"{dotted(path)}.{node.name}"


def test_only_listed_public_functions_have_many_parameters():
    """What else needs more takes one object of options."""
    listed = {name: _public(name) for names in WIDE.values() for name in names}
    places = {f"{f.__module__}.{f.__name__}" for f in map(inspect.unwrap, listed.values())}
    found = {n for p in PACKAGES if "jaxspv" in p.parts for n in wide_functions(p)}
    assert found == places, (found - places, places - found)


def _public(name):
    value = jaxspv
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


CONCRETE = {"COO", "CSR", "CSC", "Tiled", "BitTiled"}
CONCRETE |= {"SparseVector", "TiledVector", "BitVector"}
MOST_ASKED = 8  # what is left; a fast path is a registration (`formats.base.serves`)


def asks_for_formats(path):
    """Lines with an `isinstance` over concrete formats."""
    for node in nodes_of(path):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if called and node.func.id == "isinstance":
            names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            if names & CONCRETE:
                yield f"{relative(path)}:{node.lineno}"


def test_formats_are_asked_for_what_they_offer_not_for_their_class():
    found = [line for p in PACKAGES if "formats" not in p.parts for line in asks_for_formats(p)]
    assert len(found) <= MOST_ASKED, "\n".join(found)


def test_a_monoid_is_asked_for_what_it_does_not_for_its_kind():
    """`Monoid.kind` is the key of one table."""
    asked = re.compile(r"\b(add|monoid|dup|accum)\.kind\b")
    found = [relative(p) for p in PACKAGES if asked.search(p.read_text())]
    assert not found


FOR_CPUS = {"jaxspv/_core/native_loops.py"}


def conditions_without_work(path):
    """Lines of loops whose condition hands on a flag: `_core.loops.while_going` says what is wrong
    with that on NVIDIA GPUs."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("while_loop"):
            condition = getattr(node.args[0], "body", node.args[0])
            if isinstance(condition, ast.Call) and ast.unparse(condition.func) == "batch_any":
                condition = condition.args[0]
            inline = isinstance(node.args[0], ast.Lambda)
            if inline and isinstance(condition, ast.Subscript | ast.Attribute | ast.Name):
                yield f"{relative(path)}:{node.lineno}"


def test_conditions_of_loops_compute_something():
    """The lowered programs are looked at in `project/calls/test_explain.py`."""
    found = [line for p in PACKAGES for line in conditions_without_work(p)]
    assert {line.split(":")[0] for line in found} == FOR_CPUS, found
