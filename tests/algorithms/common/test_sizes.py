"""Graphs whose sizes int32 places of a kernel's queues do not count: refused, from shapes alone."""

import types

import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algorithms.bfs import api as bfs
from jaxspv.algorithms.fixpoint import gpu as fixpoint_gpu
from jaxspv.algorithms.sssp import api as sssp
from pallas_kernels.layouts.adjacency import is_low_degree


class _Sized(types.SimpleNamespace):
    dtype, shape = np.dtype(np.float32), (4,)


REFUSES = {
    "bfs": lambda G: bfs._not_persistent(G, 0, None, bounds=()),
    "fixpoint": lambda G: fixpoint_gpu.not_persistent(*_monotone(G)),
    "sssp": lambda G: sssp._not_persistent(G, 0, None, None, max_steps=None),
}


def _monotone(G):
    rest = (), (), jsp.until.unchanged(), None, (), True
    return jsp.semirings.min_plus, G, _Sized(), *rest


@pytest.mark.parametrize("search", REFUSES)
def test_sizes_whose_queues_int32_does_not_count_are_refused(search):
    refused = REFUSES[search]
    assert "int32" not in str(refused(_Sized(n=2**27, nse=2**31 - 1)))
    assert "int32" in refused(_Sized(n=2**28, nse=2**30))
    assert "int32" in refused(_Sized(n=2**28 - 2**20, nse=2**31 - 1))


def test_sizes_whose_levels_int32_does_not_count_are_refused():
    def refused(n, count):
        return bfs._no_words(_Sized(n=n, nse=9), np.zeros(count), parents=True)

    assert refused(2**26 - 1, 99) is None and refused(2**26, 31) is None
    assert "int32" in str(refused(2**26, 32)) and "int32" in str(refused(2**30, 2))


def test_an_adjacency_of_fixed_width_is_small():
    """4 * 4 words a vertex; road networks of 50 million vertices have one."""
    assert is_low_degree(51_000_000, 13, 108_000_000)
    assert not is_low_degree(2**27, 13, 2**28)
