"""The tree is the architecture: imports go downwards, names are documented, files stay short."""

import ast
import pathlib

import pytest

import jaxspv

ROOT = pathlib.Path(__file__).parent.parent
FILES = sorted([*ROOT.glob("jaxspv/**/*.py"), *ROOT.glob("pallas_kernels/**/*.py")])

# From the ground up; a module may import its own layer and those before it.
LAYERS = (
    ("_pytree", "compilation", "_guard", "batching"),
    ("operators", "until"),
    ("monoids",),
    ("masks", "semirings"),
    ("formats", "vectors"),
    ("construct", "_edges", "_random", "io", "generators", "sparsity_types", "graph"),
    ("dispatch",),
    ("layouts",),
    ("ops",),
    ("algorithms",),
    ("explaining", "checking", "autodiff", "verify"),
    ("_command_line", "cli", "__init__", "__main__"),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def module_of(path):
    """The first name below the package: `ops` for jaxspv/ops/mxv.py."""
    relative = path.relative_to(ROOT / "jaxspv")
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported(path):
    """Absolute dotted names of everything that a file imports, at any depth of nesting."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield stem
            yield from (f"{stem}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_file(path):
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the first line says what the file is for"
    assert len(text.splitlines()) <= 400
    names = list(imported(path))
    assert not [n for n in names if n.startswith("jax._src")]
    if path.is_relative_to(ROOT / "pallas_kernels"):
        assert not [n for n in names if n.split(".")[0] == "jaxspv"], "kernels know arrays only"
        return
    own = LEVEL[module_of(path)]
    for name in names:
        parts = name.split(".")
        if parts[0] == "jaxspv" and len(parts) > 1 and parts[1] in LEVEL:
            assert LEVEL[parts[1]] <= own, f"{name} lies above {module_of(path)}"


def test_every_module_has_its_layer():
    modules = {module_of(p) for p in FILES if p.is_relative_to(ROOT / "jaxspv")}
    assert modules <= set(LEVEL)


def test_public_names_are_documented():
    public = [name for name in vars(jaxspv) if not name.startswith("_")]
    assert len(public) > 40
    for name in public:
        value = getattr(jaxspv, name)
        assert (getattr(value, "__doc__", None) or "").strip(), f"{name} has no docstring"
