"""Writes the examples as notebooks with outputs: python examples/notebook.py [NAME ...].

A script `NN_name.py` is a notebook in jupytext's percent format, whose docstring is the title:
`# %%` begins a cell of code, `# %% [markdown]` one of text in comments. A test holds that notebooks
are their scripts. Needs the extra `examples`.
"""

import json
import os
import pathlib
import sys

import jupytext

HERE = pathlib.Path(__file__).parent
DRAWN = ("Text(", "[Text(", "<matplotlib", "[<matplotlib", "<Axes", "[None")


def cells_of(script):
    """(kind, text) of each cell of a script."""
    text = script.read_text()
    title, _, rest = text.removeprefix('"""').partition('"""\n')
    head, _, more = title.strip().partition("\n")
    head, _, what = head.partition(": ")
    what = what[:1].upper() + what[1:]
    yield (
        "markdown",
        "\n\n".join(part for part in (f"# {head.rstrip('.')}", what, more.strip()) if part),
    )
    for cell in jupytext.reads(rest.lstrip(), fmt="py:percent").cells:
        if cell.source.strip():
            yield cell.cell_type, cell.source


def notebook(script):
    """The notebook of a script without outputs, as a dictionary in nbformat 4."""
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


def executed(script):
    """The notebook of a script with what it prints and draws."""
    import nbformat
    from nbclient import NotebookClient

    os.environ.pop("JAXSPV_DATA", None)  # the bundled graphs, which are always there
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    book = nbformat.reads(json.dumps(notebook(script)), as_version=4)
    client = NotebookClient(book, timeout=300, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(HERE))
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _shown(output)]
    book.metadata = {"kernelspec": book.metadata["kernelspec"]}
    return json.loads(nbformat.writes(book))


def _shown(output):
    """Not warnings, which name files of the machine, nor what a call on axes returns."""
    words = "".join(output.get("data", {}).get("text/plain", ""))
    on_axes = output["output_type"] == "execute_result" and words.startswith(DRAWN)
    return output.get("name") != "stderr" and not on_axes


def scripts():
    """The examples: every script whose name begins with a number."""
    return sorted(HERE.glob("[0-9]*.py"))


if __name__ == "__main__":
    for script in scripts():
        if len(sys.argv) == 1 or any(word in script.name for word in sys.argv[1:]):
            text = json.dumps(executed(script), indent=1, ensure_ascii=False) + "\n"
            script.with_suffix(".ipynb").write_text(text)
            print(script.with_suffix(".ipynb").name, f"{len(text) / 1000:.0f} kB")
