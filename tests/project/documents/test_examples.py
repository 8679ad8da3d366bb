"""Every example runs to its end, as a user would run it."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
sys.path.insert(0, str(ROOT / "examples"))
pytest.importorskip("jupytext", reason="needs jupytext: pip install 'jaxspv[test]'")
import notebook  # noqa: E402


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_notebook_of_a_script_is_that_script_with_outputs(path):
    """Cell by cell: running one runs the other; `examples/notebook.py` writes them."""
    book = json.loads(path.with_suffix(".ipynb").read_text())
    cells = [(c["cell_type"], "".join(c["source"])) for c in book["cells"]]
    assert cells == list(notebook.cells_of(path)), f"run `python examples/notebook.py {path.stem}`"
    code = [c for c in book["cells"] if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in code] == list(range(1, len(code) + 1))
    outputs = [output for c in code for output in c["outputs"]]
    assert outputs and not any(output["output_type"] == "error" for output in outputs)
    assert not re.search("stderr|site-packages|/home/|/root/|/tmp/", json.dumps(outputs))
    assert path.with_suffix(".ipynb").stat().st_size < 600_000


def test_no_notebook_is_without_its_script():
    assert {p.stem for p in EXAMPLES} == {p.stem for p in (ROOT / "examples").glob("*.ipynb")}


def test_cells_of_a_script_in_the_percent_format(tmp_path):
    script = tmp_path / "a.py"
    script.write_text(
        '"""T: what.\n\nMore.\n"""\n\n# %%\nx = 1\n\n'
        "# %% [markdown]\n# # Head\n#\n# Text.\n\n# %%\nx\n"
    )
    want = [
        ("markdown", "# T\n\nWhat.\n\nMore."),
        ("code", "x = 1"),
        ("markdown", "# Head\n\nText."),
    ]
    assert list(notebook.cells_of(script)) == [*want, ("code", "x")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path):
    for package in ("optax", "flax", "equinox"):
        if re.search(rf"^(import|from) {package}\b", path.read_text(), re.MULTILINE):
            pytest.importorskip(package)
    done = subprocess.run(
        [sys.executable, str(path)],
        **{"cwd": ROOT, "capture_output": True, "text": True, "timeout": 300},
        env=os.environ | {"MPLBACKEND": "Agg"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout
