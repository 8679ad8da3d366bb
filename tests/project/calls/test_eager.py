"""Eager calls: one program each, what is decided once, scalars that are moved once."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from benchmarks.dev.eager_calls import profile
from jaxspv._core.eager import arrays
from jaxspv._core.eager.arrays import is_eager, scalar


@pytest.mark.parametrize("kind", ["bare", "prepared"])
def test_an_eager_call_starts_one_program(kind):
    A = jsp.generators.grid2d(jax.random.key(0), 12)
    G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank", "mxv")) if kind == "prepared" else A
    x = jnp.ones(A.shape[0])
    calls = {
        "bfs": lambda: jsp.bfs(G, 3),
        "sssp": lambda: jsp.sssp(G, 3),
        "pagerank": lambda: jsp.pagerank(G, tol=1e-4),
        "connected_components": lambda: jsp.connected_components(G),
        "product_in_capacity": lambda: jsp.mxv(G, x),
        "scaled": lambda: jsp.betweenness_centrality(G, sources=np.arange(3)),
    }
    for name, call in calls.items():
        jax.block_until_ready(call())
        assert profile(call).startswith(f"1 programs ({name})"), name
    assert profile(lambda: jnp.ones(3) + x[:3]).partition(" ")[0] > "1"  # it does count


@pytest.mark.fast
def test_numbers_are_moved_once_and_keep_their_value():
    for value in (0.0, -0.0, True, False, 3, -1, float("inf"), float("nan")):
        dtype = np.float32 if isinstance(value, float) else type(value) if value is True else int
        dtype = np.dtype(np.int32 if dtype is int else dtype)
        found = scalar(value, dtype)
        assert found.dtype == dtype and found.shape == ()
        want = np.asarray(value, dtype)
        assert np.asarray(found).tobytes() == want.tobytes()
    assert scalar(0.85, np.float32) is scalar(0.85, np.float32)
    assert scalar(False, np.bool_) is not scalar(True, np.bool_) and not scalar(False, np.bool_)
    assert isinstance(jax.jit(lambda: scalar(2, np.int32) + 1)(), jax.Array)


@pytest.mark.fast
def test_a_later_call_moves_nothing_to_the_device():
    A = jsp.from_edges([0, 1, 2, 3], [1, 0, 3, 2], [1.0, 2.0, 3.0, 4.0], shape=(4, 4))
    calls = [
        lambda: jsp.bfs(A, 0).levels,
        lambda: jsp.bfs(A, np.int32(0)).levels,
        lambda: jsp.sssp(A, 0).distances,
        lambda: jsp.pagerank(A, tol=1e-4).scores,
    ]
    first = [call() for call in calls]
    with jax.transfer_guard_host_to_device("disallow"):
        with pytest.raises(Exception, match="isallowed"):
            jax.jit(lambda x: x + 1)(np.float32(3))  # it does guard
        again = [call() for call in calls]
    for x, y in zip(first, again, strict=True):
        np.testing.assert_array_equal(x, y)
    assert jsp.bfs(A, 2).levels.tolist() == [-1, -1, 0, 1]  # another number, another value


@pytest.mark.fast
def test_what_is_eager():
    A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    assert is_eager((A, 1, np.float32(2), None))
    seen = []
    jax.jit(lambda A: (seen.append(is_eager(A)), A.data)[1])(A)
    jax.jit(lambda: (seen.append(is_eager(A)), 0)[1])()
    jax.vmap(lambda x: (seen.append(is_eager((A, x))), x)[1])(jnp.ones(2))
    jax.grad(lambda x: (seen.append(is_eager(x)), x)[1])(1.0)
    assert seen == [False] * 4


@pytest.mark.fast
def test_errors_of_a_choice_come_in_every_call():
    A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    for _ in range(2):
        with pytest.raises(ValueError, match="`method` must be one of"):
            jsp.bfs(A, 0, method="no such")
        with pytest.raises(NotImplementedError):
            jsp.bfs(A, 0, backend="pallas")
    assert jsp.bfs(A, 0).num_levels == 3


def test_what_is_traced_lives_nowhere(monkeypatch):
    """Where there is a GPU, calls inside `jit` ask the same questions of traced arrays."""
    monkeypatch.setattr(arrays, "_only_cpus", lambda: False)
    A = jsp.read_mtx(jsp.bundled("karate"))
    graphs = A, jsp.prepare(A, for_=("bfs", "sssp", "pagerank"))
    searches = [functools.partial(search, source=0) for search in (jsp.bfs, jsp.sssp)]
    for call in (*searches, jsp.connected_components, jsp.pagerank, jsp.triangle_count):
        for graph in graphs:
            assert jax.make_jaxpr(call)(graph).eqns
    assert not arrays.on_gpu(A) and not arrays.on_gpu((1, A))


@pytest.mark.fast
@pytest.mark.parametrize("shape", [(0,), (3,), (100_000,), (300, 400)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16"])
def test_large_arrays_made_for_the_device_are_not_copied(shape, dtype):
    made = arrays.zeros(shape, jnp.dtype(dtype))
    assert made.shape == shape and made.dtype == dtype and not made.any()
    made[...] = 1
    moved = arrays.to_device(made)
    assert np.array_equal(moved, np.ones(shape, dtype))
    if jax.default_backend() == "cpu" and made.nbytes > arrays.COPIED:
        assert moved.unsafe_buffer_pointer() == made.ctypes.data
