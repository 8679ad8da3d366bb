"""Sizes of the code of a checkout, as Markdown: `python tests/measures_of_code.py [FOLDER ...]`.

A folder of another commit: `git archive COMMIT | tar x -C FOLDER`.
"""

import ast
import collections
import pathlib
import re
import sys

PACKAGES = ("jaxspv", "pallas_kernels")
OFF = re.compile(r"^# pyright: (?!basic|strict)|^# ruff: noqa", re.MULTILINE)


def wide(tree):
    """How many functions take more than 8 parameters, without self."""
    functions = (node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    named = [
        [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p]
        for a in functions
    ]
    return sum(len([n for n in names if n not in ("self", "cls")]) > 8 for names in named)


def names_at_the_top(root):
    """Public names that `jaxspv/__init__.py` imports one by one."""
    tree = ast.parse((root / "jaxspv/__init__.py").read_text())
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    aliases = [alias.asname or alias.name for n in imports for alias in n.names]
    return sum(not name.startswith("_") for name in aliases)


def measures(root):
    """Name of a measure -> its value for a checkout."""
    found = collections.Counter()
    folders, about_bfs = set(), set()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            text, place = path.read_text(), path.relative_to(root)
            tree, lines = ast.parse(text), text.count("\n")
            inner = place.parts[1] if len(place.parts) > 2 else "(files)"
            found[f"lines of {package}"] += lines
            found[f"lines of {package}/{inner}"] += lines
            found["files"] += 1
            found["functions of more than 8 parameters"] += wide(tree)
            found["files with checks off"] += bool(OFF.search(text))
            found["`Any`"] += len(re.findall(r"\bAny\b", re.sub(r".*import.*", "", text)))
            folders.add(place.parent)
            if "bfs" in place.parts or "bfs" in place.stem:
                about_bfs.add(place.parent if "bfs" not in place.parts else place.parts[0])
    total = sum(found[f"lines of {package}"] for package in PACKAGES)
    found["lines"], found["folders"] = total, len(folders)
    found["folders of BFS"] = len(about_bfs)
    found["`Any` per 1,000 lines"] = round(1000 * found.pop("`Any`") / total, 1)
    found["names at the top, with modules"] = names_at_the_top(root)
    return found


def main(roots):
    """Prints a table with a column a folder."""
    columns = [measures(pathlib.Path(root)) for root in roots]
    for name in sorted({name for column in columns for name in column}):
        print(f"| {name} | {' | '.join(str(column.get(name, 0)) for column in columns)} |")


if __name__ == "__main__":
    main(sys.argv[1:] or [pathlib.Path(__file__).parents[1]])
