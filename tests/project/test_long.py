"""The table of long tests names tests that exist, and the quick part has some of each."""

import ast
import functools
import types

import long_tests
import pytest

pytestmark = pytest.mark.fast


@functools.cache
def names_in(path):
    nodes = ast.walk(ast.parse((long_tests.ROOT / path).read_text()))
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


def test_a_case_asked_for_by_its_id_is_never_long(monkeypatch):
    monkeypatch.setattr(long_tests, "SHARE", {"t.py::f": 0.0})
    long_tests.mark([types.SimpleNamespace(nodeid="t.py::f[7]")])  # has no `add_marker`
