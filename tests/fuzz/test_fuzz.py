"""A fixed share of every fuzzer runs with the tests; `python -m tests.fuzz` runs any number."""

import pytest

from .cases import Fuzzer
from .graphs import FUZZER as GRAPHS
from .mutated_files import FUZZER as FILES
from .programs import FUZZER as PROGRAMS

SHARE = [("programs", PROGRAMS, 8), ("graphs", GRAPHS, 8), ("files", FILES, 4)]


@pytest.mark.parametrize(
    ("name", "fuzzer", "seed"),
    [(name, fuzzer, seed) for name, fuzzer, count in SHARE for seed in range(count)],
    ids=lambda value: value if isinstance(value, (str, int)) else "",
)
def test_a_fixed_share(name, fuzzer, seed):
    case = fuzzer.draw(seed)
    assert fuzzer.failure(case) is None, f"python -m tests.fuzz {name} --case '{case}'"


def test_what_is_found_is_shrunk():
    def run(case):
        assert case["a"] < 2 or case["b"] < 1

    fuzzer = Fuzzer({"a": (0, 1, 2, 3), "b": (0, 1, 2), "c": (0, 1)}, run)
    assert fuzzer.shrunk({"a": 3, "b": 2, "c": 1}) == {"a": 2, "b": 1, "c": 0}
