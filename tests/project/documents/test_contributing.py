"""CONTRIBUTING.md shows the tree and the layers as they are, and names what exists."""

import re

import map_of_code
from test_architecture import LAYERS, ROOT

TEXT = map_of_code.PAGE.read_text()


def test_the_map_is_that_of_the_code():
    assert TEXT.count(map_of_code.BEGIN) == TEXT.count(map_of_code.END) == 1
    assert map_of_code.page(TEXT) == TEXT, "run `python tests/map_of_code.py`"


def test_every_layer_is_on_the_map_in_its_order():
    """Read back from the page: the number of each unit is that of its layer."""
    found = re.findall(r"^  ([ \d]\d) (\w+?)(?:\.py|/) ", TEXT, re.MULTILINE)
    assert [(int(k), name) for k, name in found] == [
        (k, name) for k, names in enumerate(LAYERS, 1) for name in names
    ]


def test_paths_that_the_page_names_exist():
    paths = re.findall(r"`((?:jaxspv|tests|benchmarks|examples|pallas_kernels)/[\w/.]+)`", TEXT)
    assert len(paths) > 3
    assert [p for p in paths if not (ROOT / p).exists() and "NN" not in p] == []
