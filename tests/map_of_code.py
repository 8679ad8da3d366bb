"""Writes the map in CONTRIBUTING.md from LAYERS and docstrings: `python tests/map_of_code.py`.

`tests/project/documents/test_contributing.py` holds that the page shows what this writes.
"""

import ast

from test_architecture import LAYERS, ROOT

PAGE = ROOT / "CONTRIBUTING.md"
BEGIN = "<!-- map: written by `python tests/map_of_code.py`, do not edit -->"
END = "<!-- end of map -->"
KERNELS = ("simt", "rows", "layouts")  # the others stand on these


def described(path):
    """One line on a module or package: what its docstring says first."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.get_docstring(ast.parse(file.read_text())).splitlines()[0]


def parts(folder):
    """The packages in a folder, with a slash; those without any but an `__init__` left out."""
    return sorted(p.parent for p in folder.glob("*/__init__.py"))


def lines():
    """The map: layer after layer from the ground up, then the kernels."""
    yield "jaxspv/"
    for number, names in enumerate(LAYERS, 1):
        for name in names:
            path = ROOT / "jaxspv" / name
            label = f"{name}/" if path.is_dir() else f"{name}.py"
            yield entry(f"{number:2} {label}", path)
            if path.is_dir():
                yield from (entry(f"     {p.name}/", p) for p in parts(path))
    yield entry("pallas_kernels/", ROOT / "pallas_kernels", indent="")
    folders = {p.name: p for p in parts(ROOT / "pallas_kernels")}
    for name in (*KERNELS, *sorted(set(folders) - set(KERNELS))):
        yield entry(f"{name}/", folders[name])
    for path in sorted((ROOT / "pallas_kernels").glob("[!_]*.py")):
        yield entry(path.name, path)


def entry(label, path, indent="  "):
    return f"{indent}{label}".ljust(24) + described(path)


def page(text):
    """`text` with the map as it should be."""
    before, _, rest = text.partition(BEGIN)
    block = "\n".join(line.rstrip() for line in lines())
    return f"{before}{BEGIN}\n```text\n{block}\n```\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
