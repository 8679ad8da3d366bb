"""Writes the examples as notebooks: python examples/notebook.py (a test holds them equal)."""

import json
import pathlib
import re

HERE = pathlib.Path(__file__).parent


def cells_of(script):
    """The docstring as text, then one cell of code for each paragraph group of the script."""
    text = script.read_text()
    title, _, rest = text.removeprefix('"""').partition('"""\n')
    yield "markdown", "# " + title.strip()
    parts = re.split(r"\n\n\n+(?=\S)", rest.strip() + "\n")
    for part in parts:
        yield "code", part.strip("\n")


def notebook(script):
    """The notebook of a script, as a dictionary in nbformat 4."""
    cells = []
    for number, (kind, source) in enumerate(cells_of(script)):
        cell = {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": source.splitlines(keepends=True),
        }
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def scripts():
    """The examples: every script whose name begins with a number."""
    return sorted(HERE.glob("[0-9]*.py"))


if __name__ == "__main__":
    for script in scripts():
        text = json.dumps(notebook(script), indent=1) + "\n"
        script.with_suffix(".ipynb").write_text(text)
        print(script.with_suffix(".ipynb").name)
