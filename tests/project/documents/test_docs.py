"""The documentation: its Python runs, every public name is in the reference, the site builds."""

import contextlib
import importlib
import io
import os
import pathlib
import re
import subprocess
import sys
import types

import pytest
from built_site import site

import jaxspv

ROOT = pathlib.Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
sys.path.insert(0, str(DOCS / "_ext"))
import plain_docstrings  # noqa: E402
import public_api  # noqa: E402
import tasks  # noqa: E402

BLOCK = re.compile(r"^( *)```(?:python|\{code-block\} python)\n(.*?)^\1```", re.M | re.S)
PRINTED = re.compile(r"\s*```text\n(.*?)^```", re.M | re.S)


def programs(text):
    """The blocks of Python on a page in order, each with the text said to be printed, or None."""
    for found in BLOCK.finditer(text):
        indent = found[1]
        code = "".join(line.removeprefix(indent) for line in found[2].splitlines(keepends=True))
        printed = PRINTED.match(text, found.end())
        yield text.count("\n", 0, found.start(2)), code, printed and printed[1]


def test_a_block_is_found_with_what_it_prints():
    text = "a\n\n  ```python\n  if 1:\n      f()\n  ```\n\n```text\n7\n```\n\n```python\nx\n```\n"
    assert list(programs(text)) == [(3, "if 1:\n    f()\n", "7\n"), (12, "x\n", None)]


QUICK = ("kernels", "performance", "start", "what")  # the others take seconds each
WITH_CODE = [
    pytest.param(page, id=page.stem, marks=[] if page.stem in QUICK else pytest.mark.long)
    for page in PAGES
    if BLOCK.search(page.read_text())
]


@pytest.mark.parametrize("page", WITH_CODE)
def test_the_python_of_a_page_runs_and_prints_what_it_says(page):
    """All blocks share one scope; a `text` block right after one is what it prints."""
    scope = {"__name__": page.stem}
    for line, code, want in programs(page.read_text()):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * line + code, str(page), "exec"), scope)
        if want is not None:
            assert printed.getvalue() == want, f"{page.name}, the block at line {line}"


def test_the_cookbook_has_twenty_problems_of_five_lines():
    text = (DOCS / "cookbook.md").read_text()
    problems = re.findall(r"^\*\*(\d+)\. .*?```python\n(.*?)```", text, re.M | re.S)
    assert [int(number) for number, _ in problems] == list(range(1, 21))
    for number, code in problems:
        lines = [line for line in code.splitlines() if line]
        asked = [line for line in lines if line.startswith(("assert ", "np.testing"))]
        assert asked and len(lines) - len(asked) <= 7, number


@pytest.mark.long
def test_several_devices_means_several(tmp_path):
    """The page runs on one device above; here on four."""
    code = "".join(code for _, code, _ in programs((DOCS / "devices.md").read_text()))
    (tmp_path / "page.py").write_text(code + "\nassert jax.device_count() == 4\n")
    flags = "--xla_force_host_platform_device_count=4"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, tmp_path / "page.py"], env=env, timeout=300)
    assert done.returncode == 0


def test_figures_are_those_that_the_script_draws():
    sys.path.insert(0, str(DOCS))
    figures, charts = map(importlib.import_module, ("figures", "charts"))
    for name, draw in (figures.FIGURES | charts.CHARTS).items():
        assert (DOCS / "_static" / f"{name}.svg").read_text() == draw(), "run the script"


def test_every_public_name_is_on_one_page_of_the_reference():
    listed = [name for names in public_api.contents(jaxspv).values() for name in names]
    exported = {
        name
        for name, value in vars(jaxspv).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    } | {
        "until.Until",
        "until.reached",
        "learning.attention",
        "results.BFS",
        "config.keep_prepared",
    }
    assert len(listed) == len(set(listed)) and exported | {"semirings", "monoids"} <= set(listed)


def test_tables_of_the_reference_link_every_name_once_under_a_task():
    for names in public_api.contents(jaxspv).values():
        groups = tasks.grouped(jaxspv, names)
        assert sorted(n for group in groups.values() for n in group) == sorted(names)
        text = "\n".join(public_api.tables(jaxspv, names))
        for name in names:
            assert text.count(f"<jaxspv.{name}>`") + text.count(f"(#{name})") == 1, name


def test_docstrings_become_text_that_says_the_same():
    text = "`A`s rows, a|b, *args; min_ `x\n    y`.\n\n>>> f('`')\n'`'\n\nThen `c`."
    got = plain_docstrings.readable(text)
    assert ">>> f('`')\n'`'\n" in got and r"a\|b, \*args; min\_" in got
    assert r"\ ``A``\ s rows" in got and r"\ ``c``\ ." in got


@pytest.mark.long
def test_the_site_builds_without_warnings_and_shows_every_name():
    shown = "".join(p.read_text() for p in (site() / "api").glob("*.html"))
    for names in public_api.contents(jaxspv).values():
        for name in names:
            assert f'id="jaxspv.{name}"' in shown or f">{name}</span>" in shown, name
