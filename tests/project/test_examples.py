"""Every example runs to its end, as a user would run it."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
WRITTEN = [path.with_suffix(".ipynb") for path in EXAMPLES]
NOTEBOOKS = sorted(set((ROOT / "examples").glob("*.ipynb")) - set(WRITTEN))


@pytest.mark.parametrize("path", WRITTEN, ids=lambda p: p.stem)
def test_notebook_of_a_script_is_that_script(path):
    """Equal code: running one runs the other; `examples/notebook.py` writes them."""
    cells = json.loads(path.read_text())["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    script = path.with_suffix(".py").read_text().partition('"""\n')[2]
    assert [line for line in "\n".join(code).splitlines() if line] == [
        line for line in script.splitlines() if line
    ]
    assert all(c["outputs"] == [] for c in cells if c["cell_type"] == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook_runs_and_is_committed_without_outputs(path):
    import matplotlib

    matplotlib.use("Agg")
    scope = {"__name__": "__main__"}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            exec(compile("".join(cell["source"]), str(path), "exec"), scope)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path):
    if "import optax" in path.read_text():
        pytest.importorskip("optax")
    done = subprocess.run(
        [sys.executable, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=300, env=None
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout
