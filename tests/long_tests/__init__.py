"""Which tests are `long`, in one place: the share of their cases that the quick part runs.

What takes long is mostly one test over many cases: the quick part takes some of each, with every
value of a parameter as soon as there are as many, the long part the others. A case asked for by its
own id always runs.
"""

import collections
import math
import pathlib
import tomllib

import pytest

HERE = pathlib.Path(__file__).parent
SHARE = {
    f"{file}::{test}": share
    for file, tests in tomllib.loads((HERE / "shares.toml").read_text()).items()
    for test, share in tests.items()
}
GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples spread over [0, 1) whatever the period of cases


def quick(names, share):
    """The places of a share of cases, of which each brings values that those before it lack."""
    values = [list(enumerate(name.partition("[")[2][:-1].split("-"))) for name in names]
    left = sorted(range(len(names)), key=lambda k: k * GOLDEN % 1)
    seen, chosen = collections.Counter(), set()
    for _ in range(math.ceil(share * len(names))):
        best = min(left, key=lambda k: sum(seen[value] for value in values[k]))
        left.remove(best)
        chosen.add(best)
        seen.update(values[best])
    return chosen


def mark(items):
    """Marks as `long` what the quick part leaves out of `items`, before any is deselected."""
    cases = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in SHARE:
            cases.setdefault(name, []).append(item)
    for name, group in cases.items():
        if len(group) == 1 and "[" in group[0].nodeid:  # asked for by its id
            continue
        chosen = quick([item.nodeid for item in group], SHARE[name])
        for k, item in enumerate(group):
            if k not in chosen:
                item.add_marker(pytest.mark.long)
