"""A call goes from the public name to the innermost loop as CONTRIBUTING draws it."""

import pathlib
import re
import sys

import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core import native_loops
from jaxspv.native import bind

PACKAGE = pathlib.Path(jsp.__file__).parent
DENSE = np.random.default_rng(0).random((23, 23)) < 0.2
A = jsp.from_dense((DENSE | DENSE.T).astype(np.float32))
CALLS = {"bfs": lambda: jsp.bfs(A, 0), "mxm": lambda: jsp.mxm(A, A)}
MOST_FILES = 7
INNERMOST = (native_loops.__file__, bind.__file__)


def drawn(name):
    """The files that the page lists for a call, in their order."""
    page = (PACKAGE.parent / "CONTRIBUTING.md").read_text()
    block = page.partition(f"\njsp.{name} ")[2].partition("\n\n")[0].partition("```")[0]
    return re.findall(r"[\w/]+\.py", block)


def ways(call):
    """The files on the stack, each once, whenever a loop over scalars, or a call of a kernel in
    C++, is traced."""
    found = []

    def entered(frame, event, _):
        if event == "call" and frame.f_code.co_filename in INNERMOST:
            files = []
            while frame is not None:
                files.append(pathlib.Path(frame.f_code.co_filename))
                frame = frame.f_back
            inside = [str(f.relative_to(PACKAGE)) for f in files[::-1] if PACKAGE in f.parents]
            found.append(tuple(dict.fromkeys(inside)))

    before = sys.getprofile()
    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_call_goes_the_way_that_is_drawn(name):
    if reason := bind.refused():
        pytest.skip(reason)
    found, files = ways(CALLS[name]), drawn(name)
    assert found and len(files) <= MOST_FILES
    assert tuple(files) in found
