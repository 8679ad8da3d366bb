"""What the site takes from the package itself: pages of the reference, the version, notebooks."""

from __future__ import annotations

import concurrent.futures
import inspect
import json
import operator
import pathlib
import re
import sys
import time
import tomllib
from collections.abc import Iterator
from typing import Any

import tasks

# Page, title, what it says first, the modules whose names at the top level it shows; the first fit
# counts. Each submodule of `SUBMODULES` has a page of its own.
PAGES = (
    ("formats", "Matrices and vectors", "How a matrix or a vector is stored.", ("formats",)),
    (
        "inputs",
        "Making and reading",
        "Matrices from edges, arrays, other libraries, files and generators.",
        ("construct", "generators", "interop", "io"),  # their names at the top level
    ),
    (
        "algebra",
        "Algebra",
        "Operators, monoids, semirings and masks: built in, or from your own functions.",
        ("algebra",),
    ),
    (
        "graphs",
        "Graph, prepare, shard",
        "What the fast paths need, computed once; graphs over several devices.",
        ("graph", "sharding"),
    ),
    ("operations", "Operations", "Products and the other operations of GraphBLAS.", ("ops",)),
    ("algorithms", "Algorithms", "Whole traversals and iterations.", ("algorithms",)),
    ("plot", "Plots", "Pictures of matrices, degrees, searches and tiles.", ("plot",)),
    ("other", "Gradients, plans, checks", "What goes around a call.", ("",)),
)
SUBMODULES = (
    *("until", "io", "generators", "learning", "automata", "graphblas", "sharding", "config"),
    "results",
)
TABLES = {"operators": "algebra", "monoids": "algebra", "semirings": "algebra"}


def version(root: pathlib.Path) -> str:
    """The version in pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]


def public(package: Any) -> dict[str, Any]:
    """The public names of a package and its submodules, as in `jsp.bfs` and `jsp.until.reached`."""
    found = {
        name: value
        for name, value in vars(package).items()
        if not name.startswith("_") and (not inspect.ismodule(value) or documented(value))
    }
    for submodule in SUBMODULES:
        module = getattr(package, submodule)
        listed = [k for k, v in vars(module).items() if not (k[0] == "_" or inspect.ismodule(v))]
        for name in getattr(module, "__all__", listed):
            found[f"{submodule}.{name}"] = getattr(module, name)
    return found


def documented(module: Any) -> bool:
    """Whether users go into the module by name: `jsp.semirings`, `jsp.plot`, `jsp.datasets`."""
    return module.__name__.rpartition(".")[2] in (*TABLES, "datasets", "plot", "verify")


def page_of(package: Any, value: Any) -> str:
    """The page that shows a public object, by the module that defines it."""
    if inspect.ismodule(value):
        module = value.__name__
    else:
        module = getattr(value, "__module__", None) or ""
        if inspect.getmodule(value) is not None:
            module = inspect.getmodule(value).__name__
    inner = module.removeprefix(f"{package.__name__}").lstrip(".")
    first = inner.partition(".")[0]
    return next(page for page, *_, modules in PAGES if first in modules or "" in modules)


def contents(package: Any) -> dict[str, list[str]]:
    """Public names by page, each list sorted without regard to case."""
    found: dict[str, list[str]] = {page: [] for page, *_ in (*PAGES, *pages(package))}
    for name, value in public(package).items():
        submodule = name.partition(".")[0]
        found[submodule if "." in name else page_of(package, value)].append(name)
    return {page: sorted(names, key=str.lower) for page, names in found.items()}


def pages(package: Any) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """The pages of the submodules, as in PAGES."""
    for name in SUBMODULES:
        yield name, f"jsp.{name}", summary(getattr(package, name)), ()


def resolved(package: Any, name: str) -> Any:
    """The object of a public name."""
    return operator.attrgetter(name)(package)


def summary(value: Any) -> str:
    """The first sentence of a docstring, on one line of a Markdown table."""
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.:])\s(?=[A-Z])", text)[0].replace("|", r"\|")


def tables(package: Any, names: list[str]) -> Iterator[str]:
    """A table a task: each name, linked to its entry below, and what it does."""
    groups = tasks.grouped(package, names)
    for heading, group in groups.items():
        if len(groups) > 1:
            yield f"**{heading}**\n"
        yield ":::{div} names\n| name | what it is |\n|-|-|"
        for name in group:
            value = resolved(package, name)
            target = f"{{py:obj}}`{name} <{package.__name__}.{name}>`"
            if inspect.ismodule(value):
                target = f"[`{name}`](#{name})"
            yield f"| {target} | {summary(value)} |"
        yield ":::\n"


def directive(package: Any, name: str) -> Iterator[str]:
    """The autodoc directive of a name, in the page's Markdown."""
    value, path = resolved(package, name), f"{package.__name__}.{name}"
    if inspect.ismodule(value):
        yield f"## `{name}`\n\n{inspect.getdoc(value)}\n"
        yield from table_of(package, name, value)
        return
    kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
    options = [":members:"] if kind == "class" else []
    fields = {*getattr(value, "_fields", ()), *getattr(value, "__dataclass_fields__", ())}
    if fields and options:  # the docstring describes them
        options += [f":exclude-members: {', '.join(sorted(fields))}"]
    yield "\n".join(["```{eval-rst}", f".. auto{kind}:: {path}", *(f"   {o}" for o in options)])
    yield "```\n"


def table_of(package: Any, name: str, module: Any) -> Iterator[str]:
    """What a module of built-in objects holds, or the functions of a module, in full."""
    functions = [k for k, v in vars(module).items() if _own_function(module, k, v)]
    if name in TABLES and hasattr(module, "ALL"):
        items = module.ALL.values() if isinstance(module.ALL, dict) else module.ALL
        yield f":::{{div}} names\n| `jsp.{name}.` | what it is |\n|-|-|"
        names = {id(v): k for k, v in vars(module).items()}
        for item in items:
            shown = repr(item).replace("|", r"\|")
            yield f"| `{names.get(id(item), getattr(item, 'name', '?'))}` | `{shown}` |"
        yield ":::\n"
    else:
        for function in functions:
            yield f"```{{eval-rst}}\n.. autofunction:: {module.__name__}.{function}\n```\n"


def _own_function(module: Any, name: str, value: Any) -> bool:
    own = inspect.isfunction(value) and value.__module__.startswith(module.__name__)
    return own and not name.startswith("_")


def write(package: Any, folder: pathlib.Path) -> None:
    """Writes the pages of the reference; what is there and unchanged keeps its time stamp."""
    folder.mkdir(exist_ok=True)
    names, index, links = contents(package), [], []
    for page, title, text, _ in (*PAGES, *pages(package)):
        if not names[page]:
            continue
        lines = [f"# {title}\n", f"{text}\n", *tables(package, names[page])]
        for name in names[page]:
            lines += directive(package, name)
        _update(folder / f"{page}.md", "\n".join(lines))
        index.append(page)
        links.append(f"- [{title}]({page}.md). {text}".replace(r"\|", "|"))
    toc, links = "\n".join(index), "\n".join(links)
    head = "# Reference\n\nEvery public name of `import jaxspv as jsp`, from its docstring. The "
    head += f"tests run every example.\n\n{links}\n"
    _update(folder / "index.md", f"{head}\n```{{toctree}}\n:hidden:\n\n{toc}\n```\n")


def copy_notebooks(examples: pathlib.Path, folder: pathlib.Path, *, run: bool) -> None:
    """The notebooks as pages, and a list of them: run anew, two at a time, or as committed."""
    folder.mkdir(exist_ok=True)
    notebooks = sorted(examples.glob("[0-9]*.ipynb"))
    if run:
        texts = list(executed(examples, [notebook.stem for notebook in notebooks]))
    else:
        texts = [notebook.read_text() for notebook in notebooks]
    for notebook, text in zip(notebooks, texts, strict=True):
        _update(folder / notebook.name, text)
    toc = "\n".join(notebook.stem for notebook in notebooks)
    head = "# Notebooks\n\nEach is the script of the same name in `examples/`, with what it prints "
    head += "and draws.\n"
    _update(folder / "index.md", f"{head}\n```{{toctree}}\n:maxdepth: 1\n\n{toc}\n```\n")


def executed(examples: pathlib.Path, stems: list[str]) -> Iterator[str]:
    """The scripts as notebooks with what they print and draw; an error of one ends the build."""
    sys.path.insert(0, str(examples))
    import notebook

    def text_of(stem: str) -> str:
        start = time.perf_counter()
        book = notebook.executed(examples / f"{stem}.py")
        print(f"examples/{stem}: {time.perf_counter() - start:.0f} s", flush=True)
        return json.dumps(book)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from pool.map(text_of, stems)


def _update(path: pathlib.Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
