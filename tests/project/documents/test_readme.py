"""README: its Python prints what it says, its commands are two, its links lead somewhere."""

import contextlib
import io
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/**/*.md")])


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.fast
def test_the_ten_lines_print_what_the_readme_says():
    (code,), (output,) = blocks("python"), blocks("text")
    assert len([line for line in code.splitlines() if line and "import" not in line]) <= 10
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == output


def test_the_commands_are_two():
    commands = blocks("console")
    assert len(commands) == 2 and all(c.count("\n") == 1 for c in commands)
    assert "jaxspv bfs" in commands[0] and "-m pytest" in commands[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(page):
    """Pages that the build of the documentation writes are for Sphinx to look for."""
    for target in re.findall(r"\]\(([^)#:\s]+)\)", page.read_text()):
        if page.parent.name == "docs" and target.startswith(("api/", "examples/", "results/")):
            continue
        assert (page.parent / target).exists(), target
