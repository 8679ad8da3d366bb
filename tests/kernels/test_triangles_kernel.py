"""The triangle kernel, interpreted, against a product of SciPy: heavy rows, others, padding."""

import functools

import jax
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv.algorithms.triangles.api import kernel_operands
from pallas_kernels.triangles import one_way as module
from pallas_kernels.triangles.one_way import triangles
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, random_graph
from tests.kernels.test_lowering import lower


def symmetric(graph):
    indptr, indices = graph
    n = len(indptr) - 1
    a = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n))
    a = sp.csr_array(a - sp.diags_array(a.diagonal()))
    a = sp.csr_array((a + a.T) != 0, dtype=np.float32)
    a.sort_indices()
    return a


def expected(a):
    low = sp.csr_array(sp.tril(a, -1), dtype=np.int64)
    return (low @ low).multiply(low).sum()


def check(a, spare=0, **options):
    if a.nnz == 0:
        return
    A = jsp.from_scipy(a)
    A = jsp.pad(A, n=a.shape[0], nse=a.nnz + spare).out if spare else A
    counts = jax.jit(functools.partial(triangles, **options))(*kernel_operands(A))
    assert int(counts.sum()) == expected(a)


@pytest.mark.parametrize("heavy", [1, 3, 48])
@pytest.mark.parametrize("name", GRAPHS)
def test_triangles(name, heavy, monkeypatch):
    monkeypatch.setattr(module, "HEAVY", heavy)
    check(symmetric(GRAPHS[name]), ctas=2, threads=64, interpret=True)


@pytest.mark.parametrize("heavy", [2, 12, 100])
def test_dense_parts_and_spare_room(heavy, monkeypatch):
    monkeypatch.setattr(module, "HEAVY", heavy)
    check(symmetric(random_graph(90, 1500, 4)), spare=40, ctas=3, threads=64, interpret=True)


def test_one_launch():
    A = jsp.from_scipy(symmetric(random_graph(90, 700, 4)))
    text = lower(triangles, *kernel_operands(A))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", NATIVE)
def test_native(name):
    for _ in range(5):
        check(symmetric(NATIVE[name]))
