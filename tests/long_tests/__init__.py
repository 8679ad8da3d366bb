"""Which tests are `long`, in one place: the share of their cases that the quick part runs.

What takes long is mostly one test over many cases: the quick part takes some of each, spread over
all parameters, the long part the others. A case asked for by its own id always runs.
"""

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


def mark(items):
    """Marks as `long` what the quick part leaves out of `items`, before any is deselected."""
    cases = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name in SHARE:
            cases.setdefault(name, []).append(item)
    for name, group in cases.items():
        alone = len(group) == 1 and "[" in group[0].nodeid  # asked for by its id
        for k, item in enumerate([] if alone else group):
            if k * GOLDEN % 1 >= SHARE[name]:
                item.add_marker(pytest.mark.long)
