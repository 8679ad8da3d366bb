"""Words that GLOSSARY.md replaced do not come back: in names, comments, docstrings, documents."""

import collections
import io
import pathlib
import re
import tokenize

import pytest

pytestmark = pytest.mark.fast
ROOT = pathlib.Path(__file__).parents[3]
RETIRED = (
    "turning", "told", "tells?", "telling", "letters?", "mail", "meetings?", "dealt", "nobody",
    "somebody", "whoever", "everybody", "in[ _]turn", "at[ _]once", "rooms?", "beside", "slopes",
)  # fmt: skip
PATTERN = re.compile(rf"(?<![a-z])(?:{'|'.join(RETIRED)})(?![a-z])")
# Sentences that are still to be rewritten, by folder. These numbers only go down.
LEFT = {
    ".": 4,
    "docs": 16,
    "docs/_ext": 2,
    "examples": 40,
    "jaxspv": 2,
    "jaxspv/_core": 9,
    "jaxspv/algorithms": 136,
    "jaxspv/cli": 1,
    "jaxspv/construct": 1,
    "jaxspv/formats": 12,
    "jaxspv/generators": 1,
    "jaxspv/io": 16,
    "jaxspv/learning": 8,
    "jaxspv/native": 8,
    "jaxspv/networkx_backend": 8,
    "jaxspv/ops": 80,
    "jaxspv/plot": 5,
    "jaxspv/sharding": 35,
    "jaxspv/verify": 8,
    "pallas_kernels": 13,
    "pallas_kernels/bfs": 153,
    "pallas_kernels/communities": 6,
    "pallas_kernels/components": 15,
    "pallas_kernels/fixpoint": 1,
    "pallas_kernels/independent": 7,
    "pallas_kernels/layouts": 3,
    "pallas_kernels/pagerank": 5,
    "pallas_kernels/products": 20,
    "pallas_kernels/rows": 22,
    "pallas_kernels/simt": 37,
    "pallas_kernels/spgemm": 11,
    "pallas_kernels/sssp": 41,
    "pallas_kernels/trees": 4,
}


def texts(path):
    """What people read in a file: names, comments and strings of Python; all of another."""
    if path.suffix != ".py":
        return [path.read_text()]
    kinds = (tokenize.NAME, tokenize.COMMENT, tokenize.STRING)
    read = io.StringIO(path.read_text()).readline
    return [t.string for t in tokenize.generate_tokens(read) if t.type in kinds]


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
    now = found()
    more = {
        folder: (n, LEFT.get(folder, 0)) for folder, n in now.items() if n > LEFT.get(folder, 0)
    }
    assert not more, f"retired words, now and allowed, by folder: {more}; see GLOSSARY.md"


def test_the_pattern_finds_names_and_sentences():
    assert PATTERN.findall("rows_in_turn at once") == ["in_turn", "at once"]
    assert not PATTERN.findall("mushroom untold besides")


def test_every_retired_word_is_in_the_glossary():
    page = (ROOT / "GLOSSARY.md").read_text()
    for word in ("turning", "told", "letter", "mail", "meeting", "dealt", "room", "slopes"):
        assert re.search(rf"\| [^|]*\b{word}\b[^|]* \|$", page, re.MULTILINE), word
