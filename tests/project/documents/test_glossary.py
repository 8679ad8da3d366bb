"""Words that GLOSSARY.md replaced do not come back: in names, comments, docstrings, documents."""

import collections
import io
import pathlib
import re
import tokenize

ROOT = pathlib.Path(__file__).parents[3]
RETIRED = (
    "turning", "told", "tells?", "telling", r"letters?(?! \d)", "mail", "meetings?", "dealt",
    "nobody", "somebody", "whoever", "everybody", "in[ _]turn", "at[ _]once", "rooms?", "beside",
    "slopes",
)  # fmt: skip
PATTERN = re.compile(rf"(?<![a-z])(?:{'|'.join(RETIRED)})(?![a-z])")


def texts(path):
    """What people read in a file: names, comments and strings of Python; all of another."""
    text = path.read_text()
    if path.suffix != ".py" or not PATTERN.search(text.lower()):
        return [text]
    kinds = (tokenize.NAME, tokenize.COMMENT, tokenize.STRING)
    read = io.StringIO(text).readline
    tokens = [t.string for t in tokenize.generate_tokens(read) if t.type in kinds]
    return [t for t in tokens if t != "tell"]  # a method of Python's files


def found():
    """How many retired words each folder holds."""
    count = collections.Counter()
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for top in ("jaxspv", "pallas_kernels", "docs", "examples"):
        paths += sorted((ROOT / top).glob("**/*"))
    for path in paths:
        parts = path.relative_to(ROOT).parts
        generated = parts[0] == "docs" and parts[1] in ("_build", "api", "results", "examples")
        if path.suffix in (".py", ".md", ".h", ".cc") and not generated:
            folder = "/".join(parts[:-1][:2]) or "."
            count[folder] += sum(len(PATTERN.findall(t.lower())) for t in texts(path))
    return {folder: n for folder, n in sorted(count.items()) if n}


def test_retired_words_do_not_come_back():
    assert not (now := found()), f"retired words by folder: {now}; see GLOSSARY.md"


def test_the_pattern_finds_names_and_sentences():
    assert PATTERN.findall("rows_in_turn at once") == ["in_turn", "at once"]
    assert PATTERN.findall("a letter tells") == ["letter", "tells"]
    assert not PATTERN.findall("mushroom untold besides letters 100")  # of a journal


def test_every_retired_word_is_in_the_glossary():
    page = (ROOT / "GLOSSARY.md").read_text()
    for word in ("turning", "told", "letter", "mail", "meeting", "dealt", "room", "slopes"):
        assert re.search(rf"\| [^|]*\b{word}\b[^|]* \|$", page, re.MULTILINE), word
