"""Threads, processes, an interrupted call, pickles, and a long life of eager calls."""

import concurrent.futures
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

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
