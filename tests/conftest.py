"""What all tests share: hypothesis profiles, the GPU and slow marks, the folder of real graphs."""

import gc
import importlib.metadata
import os
import random
import shutil
import sys
import tempfile
import threading

if shutil.which("nvidia-smi") is None:
    # Most of the time goes into compiling: without LLVM's optimisations it takes 0.7 of it, and
    # with the older way to emit loops, in one module each, half of that (jaxlib 0.10 has it still).
    flags = ["--xla_backend_optimization_level=0"]
    if importlib.metadata.version("jaxlib").startswith("0.10."):
        flags += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
    os.environ.setdefault("XLA_FLAGS", " ".join(flags))

import chex
import hypothesis
import jax
import long_tests
import pytest
from graph_files import data_folder
from jax._src.interpreters import mlir
from long_tests import draws

THOROUGH = os.environ.get("JAXSPV_THOROUGH") == "1"

hypothesis.settings.register_profile("default", deadline=None, max_examples=10, derandomize=True)
hypothesis.settings.register_profile(
    "thorough", deadline=None, max_examples=200, derandomize=False, print_blob=True
)
hypothesis.settings.load_profile("thorough" if THOROUGH else "default")


KEPT = {  # JAX's settings: a folder for the programs of this run, short ones too
    "jax_compilation_cache_dir": "",
    "jax_persistent_cache_min_compile_time_secs": 0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


def share_programs(config):
    """What one test, worker or command of a run has compiled, the others read from a folder."""
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:  # as it is in workers
        folder = tempfile.TemporaryDirectory(prefix="jaxspv-", ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        KEPT["jax_compilation_cache_dir"] = folder.name
        os.environ |= {name.upper(): str(value) for name, value in KEPT.items()}
    KEPT["jax_compilation_cache_dir"] = os.environ["JAX_COMPILATION_CACHE_DIR"]
    keep_programs()


def keep_programs():
    """Sets back what a test changed: `enable_compilation_cache`, or the command line."""
    for name, value in KEPT.items():
        if getattr(jax.config, name) != value:
            jax.config.update(name, value)


def keep_bytecode():
    """Python's own programs too, also where an image of a container forbids it: pytest rewrites all
    tests in each worker, and every command compiles the package."""
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def share_contexts(most=10):
    """Lowers that many programs in one MLIR context, as JAX 0.12 does: a new one takes longer than
    most programs of tests."""
    kept, make = threading.local(), mlir.make_ir_context

    def context():
        if mlir.ir.Context.current is not None:  # a program inside of one that is lowered
            return make()
        kept.uses = getattr(kept, "uses", 0) + 1
        if kept.uses % most == 1:
            kept.context = make()
        return kept.context

    mlir.make_ir_context = context


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Shares programs; a thorough run draws its own seed, so that the report can name it."""
    share_programs(config)
    keep_bytecode()
    if jax.__version_info__ < (0, 12):
        share_contexts()
    if THOROUGH and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().getrandbits(32))


def pytest_report_header(config):
    if THOROUGH:
        return f"thorough: 200 examples, --hypothesis-seed={config.option.hypothesis_seed}"
    return "quick: 10 fixed examples a property; JAXSPV_THOROUGH=1 draws 200 and runs slow tests"


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and jax.default_backend() != "gpu":
        pytest.skip(f"needs an NVIDIA GPU; JAX runs on {jax.default_backend()}")
    if item.get_closest_marker("slow") and not THOROUGH:
        pytest.skip("takes minutes; JAXSPV_THOROUGH=1 runs it")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    long_tests.mark(items)
    draws.leave_out(items)


left_out = pytest.StashKey[int]()


def pytest_deselected(items):
    if items:
        stash = items[0].config.stash
        long = sum(item.get_closest_marker("long") is not None for item in items)
        stash[left_out] = stash.get(left_out, 0) + long


def pytest_sessionfinish(session):
    """A worker of pytest-xdist tells the process that reports how many long tests it left out."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(left_out, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    node.config.stash[left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter, config):
    if count := config.stash.get(left_out, 0):
        terminalreporter.write_line(f"left out: {count} long tests, which `-m long` runs")


def pytest_collection_finish(session):
    """Programs leave many objects and little garbage: looking through them took 5% of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)


MOST_PROGRAMS = 2_000  # Linux ends a process at 65,530 memory maps; a program takes 9 to 24


def pytest_runtest_teardown(item):
    """Lets go of compiled programs before there are so many that LLVM runs out of memory maps."""
    keep_programs()
    if len(jax.devices()[0].client.live_executables()) > MOST_PROGRAMS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(autouse=True)
def traces_from_zero():
    """`chex.assert_max_traces` counts by source code: each test, and each case of one, anew."""
    chex.clear_trace_counter()


@pytest.fixture(scope="session")
def data():
    """The folder of real graphs; skips where there is none."""
    folder = data_folder()
    if folder is None:
        pytest.skip("no real graphs: put them into ../shared/data or set JAXSPV_DATA")
    return folder
