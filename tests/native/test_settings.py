"""C++ forms in exports, over devices, and on fewer threads."""

import ctypes
import os
import pathlib
import subprocess
import sys
import unittest.mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import NamedSharding, PartitionSpec

import jaxspv as jsp
from jaxspv.native import bind, build

pytestmark = pytest.mark.skipif(bind.refused() is not None, reason="there are no C++ kernels")

ROW, COL = np.array([0, 1, 1, 2, 3, 4, 0, 5]), np.array([1, 2, 3, 4, 5, 5, 4, 0])
WEIGHTS = np.array([1, 4, 1, 2, 1, 1, 9, 3], np.float32)


def matrix():
    return jsp.from_edges(ROW, COL, WEIGHTS, shape=(6, 6))


CALLS = {
    "bfs": lambda A: jsp.bfs(A, 0).levels,
    "sssp": lambda A: jsp.sssp(A, 0).distances,
    "mxm": lambda A: jsp.mxm(A, A, nse=32).todense(),
    "mxv": lambda A: jsp.mxv(A, jnp.ones(6, np.float32)),
}
DENSE = np.zeros((6, 6), np.float32)
DENSE[ROW, COL] = WEIGHTS
WANT = {
    "bfs": [0, 1, 2, 2, 1, 2],
    "sssp": [0, 1, 5, 2, 7, 3],
    "mxm": DENSE @ DENSE,
    "mxv": DENSE.sum(1),
}


@pytest.mark.parametrize("name", CALLS)
def test_exports_hold_no_calls_of_kernels(name):
    sent = export.export(jax.jit(CALLS[name]))(matrix())
    assert "jaxspv_" not in sent.mlir_module()
    np.testing.assert_array_equal(sent.call(matrix()), WANT[name])


@pytest.mark.parametrize("name", CALLS)
def test_the_same_calls_hold_some_in_programs(name):
    run = jax.jit(CALLS[name])
    assert "jaxspv_" in run.lower(matrix()).as_text()
    np.testing.assert_array_equal(run(matrix()), WANT[name])


def test_two_devices():
    """In a process that has them: an automatic mesh takes no kernels, a `shard_map` does."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, __file__], env=os.environ | flags, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def two():
    return jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))


def on_an_automatic_mesh(call, want):
    mesh = two()
    A = jax.device_put(matrix(), NamedSharding(mesh, PartitionSpec()))
    run = jax.jit(call)
    assert "jaxspv_" not in run.lower(A).as_text()
    np.testing.assert_array_equal(run(A), want)


def on_each_device(call, want):
    mesh, spec = two(), PartitionSpec("x")

    def one(A, scale):
        found = call(A)[None]
        return found * scale[0].astype(found.dtype)

    run = jax.jit(jax.shard_map(one, mesh=mesh, in_specs=(PartitionSpec(), spec), out_specs=spec))
    scale = jnp.array([1.0, 2.0])
    assert "jaxspv_" in run.lower(matrix(), scale).as_text()
    np.testing.assert_array_equal(
        run(matrix(), scale).reshape(2, *np.shape(want)), [want, 2 * np.asarray(want)]
    )


def test_threads_change_no_result():
    u, v = np.random.default_rng(0).integers(0, 500, (2, 4000))
    A = jsp.from_edges(u, v, shape=(500, 500))
    found = []
    for count in (1, 3, 0):
        jsp.config.set_num_threads(count)
        found.append(
            (
                jsp.bfs(A, 0).levels,
                jsp.mxv(A, jnp.arange(500, dtype=np.float32)),
                jsp.sssp(A, 0).distances,
            )
        )
    for other in found[1:]:
        jax.tree.map(np.testing.assert_array_equal, found[0], other)
    with pytest.raises(ValueError, match="integer >= 0"):
        jsp.config.set_num_threads(-1)


def set_by(call, monkeypatch):
    """The limit on threads that a call gives to the library, as an int of C holds it."""
    library = unittest.mock.MagicMock()
    library.jaxspv_handlers.return_value = b""
    monkeypatch.setattr(bind.ctypes, "CDLL", lambda path: library)
    monkeypatch.setattr(bind, "_loaded", bind._loaded.__wrapped__)
    call()
    return ctypes.c_int(library.jaxspv_set_num_threads.call_args.args[0]).value


@pytest.mark.parametrize(
    ("asked", "limit"), [("2", 2), (" 3", 3), ("", 0), (str(2**32 + 1), 2**31 - 1)]
)
def test_the_environment_limits_the_threads(asked, limit, monkeypatch):
    monkeypatch.setenv(bind.THREADS, asked)
    assert set_by(bind.refused, monkeypatch) == limit


@pytest.mark.parametrize("asked", ["-1", "two", "1.5", "\N{SUPERSCRIPT TWO}"])
def test_the_environment_names_a_number(asked, monkeypatch):
    monkeypatch.setenv(bind.THREADS, asked)
    with pytest.raises(ValueError, match=f"{bind.THREADS} must be an integer >= 0; got '{asked}'"):
        set_by(bind.refused, monkeypatch)


@pytest.mark.parametrize("count", [2**31, 2**32 + 1, 10**30])
def test_more_threads_than_an_int_of_c_holds(count, monkeypatch):
    assert set_by(lambda: jsp.config.set_num_threads(count), monkeypatch) == 2**31 - 1


if __name__ == "__main__":
    for name in CALLS:
        on_an_automatic_mesh(CALLS[name], WANT[name])
        on_each_device(CALLS[name], WANT[name])


def test_the_sources_are_read_once(monkeypatch):
    read = []
    whole = pathlib.Path.read_bytes
    monkeypatch.setattr(pathlib.Path, "read_bytes", lambda path: read.append(path) or whole(path))
    build.filename.cache_clear()
    for _ in range(2):
        build.library()
    assert 0 < len(read) <= len(build.sources()) * len(build.supported())


def test_a_checkout_takes_the_library_that_pip_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "HERE", tmp_path / "checkout/jaxspv/native")
    monkeypatch.setattr(build, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(build.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(build, "filename", lambda extra: f"kernels-{len(extra)}.so")
    installed = tmp_path / "jaxspv/native" / build.filename(build.supported()[0])
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert build.library() == installed


def test_a_user_without_a_home_takes_what_is_installed(monkeypatch, tmp_path):
    """As a container's user with no entry in the list of users, and no HOME."""
    monkeypatch.setattr(build, "HERE", tmp_path)
    monkeypatch.setattr(build, "filename", lambda extra: f"kernels-{len(extra)}.so")
    installed = tmp_path / build.filename(build.supported()[0])
    installed.touch()
    for name in ("HOME", "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(RuntimeError, match="home"):
        pathlib.Path.home()
    assert build.library() == installed
    with pytest.raises(OSError, match="this user has no home: set XDG_CACHE_HOME or HOME"):
        jsp.config.enable_compilation_cache()
