"""Marks for NetworkX's own tests that this backend cannot pass, each with its reason."""

from __future__ import annotations

from typing import Any

TIES = "asks for one of several shortest paths, that of NetworkX's bidirectional search"
ORDER = "takes strong components in the order of NetworkX's depth-first search"
LABELS = "counts the communities that NetworkX's own order of updates gives"
CANNOT_MATCH = {  # part of a test's id -> why
    "TestMinimumCycleBasis::test_unweighted_diamond": TIES,
    "TestMinimumCycleBasis::test_weighted_diamond": TIES,
    "TestMinimumCycleBasis::test_gh6787_and_edge_attribute_names": TIES,
    "test_non_randomness[None-": LABELS,
    "TestStronglyConnected::test_condensation_mapping_and_members": ORDER,
}


def on_start_tests(items: list[Any]) -> None:
    """The hook that NetworkX calls with the tests it collected."""
    import pytest

    for item in items:
        for name, reason in CANNOT_MATCH.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=False))
