"""Programs that `jax.export` stored stay loadable, wherever the modules of the library move."""

import pathlib

import jax
import numpy as np
import pytest

import jaxspv as jsp

pytest.importorskip("flatbuffers")
STORED = pathlib.Path(__file__).parents[1] / "data" / "exported_program.bin"


@pytest.mark.fast
def test_a_stored_program_takes_and_returns_the_classes_of_today():
    """Stored by 0.1.0 on JAX 0.10.2: `lambda A, v, s: (bfs(A, s), sssp(A, s), A.T, v)`, for CPUs.

    Its trees name `jaxspv.CSR`, `jaxspv.SparseVector` and the results, not their modules.
    """
    if jax.default_backend() != "cpu":
        pytest.skip("the program was lowered for CPUs")
    row, col, data = np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3]), np.float32([1, 2, 3, 9])
    A = jsp.from_edges(row, col, data, shape=(4, 4))
    v = jsp.vector_from_entries([1, 3], np.float32([1, 2]), n=4)
    program = jax.export.deserialize(bytearray(STORED.read_bytes()))
    search, paths, transposed, w = program.call(A, v, np.int32(0))
    assert type(search).__name__ == "BFS" and search.levels.tolist() == [0, 1, 2, 1]
    assert type(paths).__name__ == "SSSP" and paths.distances.tolist() == [0, 1, 3, 6]
    assert isinstance(transposed, jsp.CSC) and isinstance(w, jsp.SparseVector)
    assert np.array_equal(transposed.todense(), A.todense().T)
    assert w.todense().tolist() == [0, 1, 0, 2]
