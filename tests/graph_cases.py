"""Random and named graphs for tests of algorithms, with NetworkX's view of each."""

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
from graph_files import data_folder

import jaxspv as jsp
from jaxspv.native import bind

# Without the C++ kernels most algorithms have no form of backend "cpu".
BACKENDS = ("xla",) if bind.refused() else ("cpu", "xla")


def random_matrix(n, entries, seed, *, symmetric=False, loops=True):
    """SciPy's CSR of integer weights from 1 to 4 in float32."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, n, (2, entries))
    A = sp.coo_array((rng.integers(1, 5, entries).astype(np.float32), tuple(ends)), shape=(n, n))
    A.sum_duplicates()
    A = sp.csr_array(A.maximum(A.T) if symmetric else A)
    if not loops:
        A = sp.coo_array(A)
        off = A.row != A.col
        A = sp.csr_array(sp.coo_array((A.data[off], (A.row[off], A.col[off])), shape=A.shape))
    return A


def networkx_of(A, *, symmetric):
    """Nodes 0 to n - 1 in order."""
    kind = networkx.Graph if symmetric else networkx.DiGraph
    return networkx.from_scipy_sparse_array(A, create_using=kind)


def named(name, *, symmetric=False):
    """A bundled graph or one of the data folder, which skips without; maybe with its mirror."""
    if name in ("karate", "jazz", "minnesota"):
        A = jsp.read_mtx(jsp.bundled(name))
    elif data_folder() is None:
        pytest.skip("no real graphs: put them into ../shared/data or set JAXSPV_DATA")
    elif (path := next(data_folder().glob(f"{name}.mtx*"), None)) is None:
        pytest.skip(f"{name} is not in {data_folder()}")
    else:
        A = jsp.read_mtx(path)
    if not symmetric:
        return A
    matrix = A.to_scipy()
    return jsp.from_scipy(sp.csr_array(abs(matrix) + abs(matrix).T))


def same(result, want, rtol=1e-5, atol=1e-6):
    """An array of vertices against a dict of NetworkX."""
    np.testing.assert_allclose(result, [want[v] for v in range(len(want))], rtol=rtol, atol=atol)
