"""The table of long tests names tests that exist, and the quick part has some of each."""

import ast
import functools
import types

import long_tests
import numpy as np
import pytest
from long_tests import draws


@functools.cache
def names_in(path):
    nodes = ast.walk(ast.parse((draws.ROOT / path).read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", long_tests.SHARE)
def test_named_tests_exist(name):
    path, _, function = name.partition("::")
    assert function in names_in(path), f"mend or remove its line in {long_tests.__file__}"
    assert 0 <= long_tests.SHARE[name] < 1


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("period", [2, 3, 5])
def test_the_quick_part_has_cases_of_every_kind(monkeypatch, share, period):
    marked = []
    monkeypatch.setattr(long_tests, "SHARE", {"t.py::f": share})
    items = [
        types.SimpleNamespace(nodeid=f"t.py::f[{k}]", add_marker=lambda _, k=k: marked.append(k))
        for k in range(60)
    ]
    long_tests.mark([*items, types.SimpleNamespace(nodeid="t.py::g[0]")])
    quick = set(range(60)) - set(marked)
    assert abs(len(quick) - 60 * share) <= 3
    assert {k % period for k in quick} == set(range(period))


def test_the_quick_part_has_every_value_of_every_parameter():
    for sizes in ((5, 5), (2, 5), (3, 4, 2), (7, 1)):
        names = ["t.py::f[" + "-".join(map(str, v)) + "]" for v in np.ndindex(sizes)]
        chosen = long_tests.quick(names, max(sizes) / len(names))
        assert len(chosen) == max(sizes)
        for place, size in enumerate(sizes):
            assert {np.unravel_index(k, sizes)[place] for k in chosen} == set(range(size))


def test_a_case_asked_for_by_its_id_is_never_long(monkeypatch):
    monkeypatch.setattr(long_tests, "SHARE", {"t.py::f": 0.0})
    long_tests.mark([types.SimpleNamespace(nodeid="t.py::f[7]")])  # has no `add_marker`


class Item:
    def __init__(self, nodeid, long=True):
        self.nodeid, self.long, self.undrawn = nodeid, long, False

    def get_closest_marker(self, name):
        return self.long if name == "long" else None

    def add_marker(self, mark):
        self.undrawn = self.undrawn or mark.name == "undrawn"


def drawn(monkeypatch, share, seed, thorough="0"):
    monkeypatch.setenv("JAXSPV_LONG_SHARE", share)
    monkeypatch.setenv("JAXSPV_LONG_SEED", seed)
    monkeypatch.setenv("JAXSPV_THOROUGH", thorough)
    items = [Item(f"t.py::f[{k}]") for k in range(800)] + [Item("t.py::g", long=False)]
    draws.leave_out(items)
    assert not items[-1].undrawn
    return {item.nodeid for item in items[:-1] if not item.undrawn}


def test_a_share_of_the_long_tests_is_drawn_by_the_seed(monkeypatch):
    shares = [drawn(monkeypatch, "1/8", str(seed)) for seed in range(60)]
    assert all(60 <= len(share) <= 145 for share in shares)  # 100 and five standard deviations
    assert shares[0] == drawn(monkeypatch, "1/8", "0") != shares[1]
    assert len(set().union(*shares)) >= 798  # (7/8)^60 of 800 is a third of one
    assert len(drawn(monkeypatch, "1", "0")) == 800
    assert len(drawn(monkeypatch, "1/8", "0", thorough="1")) == 800
    with pytest.raises(ValueError, match="JAXSPV_LONG_SHARE"):
        drawn(monkeypatch, "0", "0")


def test_the_seed_is_the_hash_of_the_commit():
    assert len(draws.commit()) == 40
