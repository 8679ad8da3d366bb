"""Threads, processes, an interrupted call, pickles, and a long life of eager calls."""

import concurrent.futures
import multiprocessing
import os
import pathlib
import pickle
import select
import signal
import subprocess
import sys
import time
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core import operation
from jaxspv._core.eager import programs
from jaxspv._core.eager.programs import PROGRAMS

DENSE = np.where(np.random.default_rng(0).random((30, 30)) < 0.2, 2.0, 0).astype(np.float32)


def answer(k):
    """A few eager calls on a shape of its own."""
    D = DENSE[: 10 + k % 4, : 10 + k % 4]
    A = jsp.from_dense(D)
    y = np.asarray(A @ jnp.ones(len(D)))
    levels = np.asarray(jsp.bfs(A, 0).levels)
    both = np.asarray(jsp.ewise_add(A, A.T).todense())
    return (y == D.sum(1)).all() and levels[0] == 0 and (both == D + D.T).all()


def test_two_threads_call_together():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert all(pool.map(answer, range(24)))


@pytest.mark.long
def test_a_pool_of_processes_calls_together():
    context = multiprocessing.get_context("spawn")  # JAX's threads do not survive a fork
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert all(pool.map(answer, range(6)))


INTERRUPTED = """
import signal
import numpy as np
import jaxspv as jsp
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored under a shell's `&`
n = 30_000
path = jsp.from_edges(np.arange(n - 1), np.arange(1, n), shape=(n, n))
call = lambda: jsp.pagerank(path, tol=0.0, max_iterations=50).scores.block_until_ready()
want = np.asarray(call())
for _ in range(3):
    print("ready", flush=True)
    try:
        while True:
            call()
    except KeyboardInterrupt:
        print("caught", flush=True)
    assert np.array_equal(np.asarray(call()), want)
    assert np.asarray(jsp.bfs(path, 0).levels)[-1] == n - 1
print("right", flush=True)
"""


@pytest.mark.long
def test_an_interrupted_call_leaves_a_usable_process():
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for delay in (0.02, 0.3, 0.7):
            assert process.stdout.readline() == "ready\n"
            time.sleep(delay)
            for _ in range(9):  # a signal that meets JAX in a garbage collection is swallowed there
                process.send_signal(signal.SIGINT)
                if select.select([process.stdout], [], [], 5)[0]:
                    break
            assert process.stdout.readline() == "caught\n"
        assert process.stdout.readline() == "right\n" and process.wait(60) == 0


def kinds():
    A = jsp.from_dense(DENSE)
    x = jsp.vector_from_entries([1, 5], [2.0, 3.0], 30)
    made = [A.asformat(name) for name in ("csr", "csc", "coo", "tiled", "bittiled")]
    return [*made, x, jsp.TiledVector.from_sparse(x), jsp.BitVector.from_sparse(x), jsp.bfs(A, 0)]


READ = """
import pickle, sys
import numpy as np
for node, dense in pickle.load(open(sys.argv[1], "rb")):
    got = node.levels if hasattr(node, "levels") else node.todense()
    assert np.array_equal(np.asarray(got), dense), type(node)
print("right", sys.version_info[:2])
"""


def written(path):
    def dense(node):
        return np.asarray(node.levels if hasattr(node, "levels") else node.todense())

    path.write_bytes(pickle.dumps([(node, dense(node)) for node in kinds()]))


@pytest.mark.long
def test_pickles_are_read_by_other_pythons(tmp_path):
    """Those of JAXSPV_PYTHONS (paths, ":" between them), and this one."""
    path = tmp_path / "all.pickle"
    written(path)
    for python in (sys.executable, *filter(None, os.environ.get("JAXSPV_PYTHONS", "").split(":"))):
        done = subprocess.run(
            [python, "-c", READ, str(path)],
            capture_output=True,
            text=True,
            timeout=300,
            env={k: v for k, v in os.environ.items() if k != "XLA_FLAGS"},  # of one version
        )
        assert done.stdout.startswith("right"), done.stderr[-2000:]


@pytest.mark.long
def test_many_calls_of_many_shapes_stay_bounded():
    from benchmarks.dev.long_life import lived

    rows = lived(2000, 60)
    assert rows[-1]["megabytes"] < rows[4]["megabytes"] + 200
    assert rows[-1]["maps"] < rows[4]["maps"] + 2000
    assert rows[-1]["median_ms"] < 3 * rows[4]["median_ms"] + 1


CUT = """
import pathlib, sys, warnings
import jax
import numpy as np
import jaxspv as jsp
from jaxspv._core.eager.programs import PROGRAMS
folder = pathlib.Path(jsp.config.enable_compilation_cache(sys.argv[1]))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)  # also quick programs
ends = np.arange(29), np.arange(1, 30)
path = jsp.from_edges(np.concatenate(ends), np.concatenate(ends[::-1]), shape=(30, 30))
want = np.asarray(jsp.katz_centrality(path).scores)  # compiled by XLA on every backend
entries = sorted(folder.glob("*-cache"))
assert entries, list(folder.iterdir())
for keep in (0.5, 0.0):
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[: int(keep * entry.stat().st_size)])
    if not keep:
        jsp.config.enable_compilation_cache(folder)
        assert not any(entry.exists() for entry in entries)
    PROGRAMS.programs.clear()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert np.array_equal(np.asarray(jsp.katz_centrality(path).scores), want)
    cut = [w for w in found if "persistent compilation cache" in str(w.message)]
    assert bool(cut) == bool(keep), found
assert all(entry.stat().st_size for entry in entries if entry.exists())
print("right")
"""


@pytest.mark.long
def test_entries_of_the_cache_that_a_killed_process_cut_do_no_harm(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CUT, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split() == ["right"], done.stderr[-2000:]


@pytest.mark.long
def test_programs_are_bounded_by_the_memory_maps_of_the_process(monkeypatch):
    def maps():
        return pathlib.Path("/proc/self/maps").read_text().count("\n")

    twice = jsp.monoid(lambda a, b: a + b + 0 * a * b, 0.0)
    values = np.arange(60, dtype=np.float32)

    def reduced(n):  # a scan has the maps of many kernels
        G = jsp.from_edges(np.arange(n), np.arange(n), values[:n], shape=(60, 60))
        assert jsp.reduce(G, twice) == n * (n - 1) / 2

    reduced(20)
    start = maps()
    monkeypatch.setattr(PROGRAMS, "most_maps", start)
    monkeypatch.setattr(programs, "LOOKED", 2)
    for n in range(21, 35):
        reduced(n)
    assert maps() < start + 500, "of 14 sizes more than 1,000"


@pytest.mark.parametrize("name", ["walk", "sample", "softmax", "aggregate", "reduce", "arrays"])
def test_eager_calls_of_new_sizes_are_among_the_bounded_programs(name, monkeypatch):
    G = jsp.from_dense(DENSE)
    monkeypatch.setattr(PROGRAMS, "run", run := mock.Mock(side_effect=PROGRAMS.run))
    learning, key = jsp.learning, jax.random.key(0)
    call = {
        "walk": lambda: learning.random_walk(key, G, [0, 1], 2),
        "sample": lambda: learning.sample_neighbors(key, G, [0, 1], 2),
        "softmax": lambda: learning.softmax(G),
        "aggregate": lambda: learning.aggregate(G, "max"),
        "reduce": lambda: jsp.reduce(G, jsp.monoids.max_),
        "arrays": lambda: jsp.reduce(G.with_data(jnp.ones((G.nse, 2))), axis=1),
    }[name]
    found = call()
    assert run.called
    jax.tree.map(np.testing.assert_array_equal, found, jax.jit(call)())


def test_calls_that_fail_drop_no_programs(monkeypatch):
    def fails(x):
        return x / (1 // 0)

    G = jsp.from_dense(DENSE)
    monkeypatch.setattr(programs, "PROGRAMS", made := programs._Programs(4))
    monkeypatch.setattr(operation, "PROGRAMS", made)
    jsp.apply(G, jnp.sqrt)
    held = dict(made.programs)
    for k in range(12):
        with pytest.raises(ZeroDivisionError):
            jsp.apply(G, fails if k % 2 else lambda x, fails=fails: fails(x))
    assert made.programs == held and made.traces.total() == len(held) == 1


def test_an_interrupted_program_is_made_again(monkeypatch):
    def interrupted(*leaves):
        raise KeyboardInterrupt

    G = jsp.from_dense(DENSE)
    monkeypatch.setattr(programs, "PROGRAMS", made := programs._Programs(4))
    monkeypatch.setattr(operation, "PROGRAMS", made)
    jsp.apply(G, jnp.sqrt)
    (key,) = made.programs
    made.programs[key] = interrupted
    with pytest.raises(KeyboardInterrupt):
        jsp.apply(G, jnp.sqrt)
    np.testing.assert_allclose(jsp.apply(G, jnp.sqrt).todense(), np.sqrt(DENSE), rtol=1e-6)
