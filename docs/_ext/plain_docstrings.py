"""Lets Sphinx read docstrings written as plain text with `code` between single backticks."""

from __future__ import annotations

import re

CODE = re.compile(r"`([^`]+)`")
EXAMPLE = re.compile(r"^[ ]*>>> .*?(?:\n[ ]*\n|\Z)", re.MULTILINE | re.DOTALL)


def readable(text: str) -> str:
    """reStructuredText that shows a docstring as it stands: examples apart, code as literals."""
    parts, at = [], 0
    for example in EXAMPLE.finditer(text):
        parts += [_prose(text[at : example.start()]), example.group()]
        at = example.end()
    return "".join([*parts, _prose(text[at:])])


def _prose(text: str) -> str:
    parts, at = [], 0
    for code in CODE.finditer(text):
        parts += [_escaped(text[at : code.start()]), rf"\ ``{code[1].strip()}``\ "]
        at = code.end()
    return "".join([*parts, _escaped(text[at:])])


def _escaped(text: str) -> str:
    return re.sub(r"([*|\\]|(?<=\w)_\b)", r"\\\1", text)


def process(app, what, name, value, options, lines) -> None:
    """Runs before napoleon, which looks for `Args:` and the other headings."""
    lines[:] = readable("\n".join(lines)).split("\n")


def setup(app) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=1)
    return {"parallel_read_safe": True}
