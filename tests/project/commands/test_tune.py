"""`jaxspv tune` and the constants that it stores: by fake times, and on a CPU."""

import itertools
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxspv.cli import tune
from jaxspv.cli._jaxspv_command import main
from jaxspv.generators import rmat
from pallas_kernels import tuning
from pallas_kernels.products.spmm import tile_for
from pallas_kernels.simt.device import Device
from pallas_kernels.tuning import Constants, constants, using
from tests.kernels.test_device import on

H200 = Device("NVIDIA H200", 132, 232448, (9, 0))
A100 = Device("NVIDIA A100-SXM4-80GB", 108, 166912, (8, 0))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder of caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tuning.stored.cache_clear()
    yield tmp_path / "jaxspv"
    tuning.stored.cache_clear()


def trial(spent, values, cases=("a", "b")):
    """A trial of `bfs_alpha` whose calls return their times: spent[case][alpha]."""

    def case(label):
        return tune.Case(lambda: spent[label][constants().bfs_alpha], ())

    return tune.Trial(values, lambda: {label: case(label) for label in cases})


def by_call(case):
    spent = case.call(*case.operands)
    return lambda: spent


def test_the_least_mean_over_graphs_is_taken():
    spent = {"a": {14.0: 1.0, 4.0: 0.5, 8.0: 0.7}, "b": {14.0: 1.0, 4.0: 1.9, 8.0: 0.8}}
    value, times = tune.best("bfs_alpha", trial(spent, (4.0, 8.0)), by_call)
    assert value == 8.0 and times["b", 4.0] == 1.9 and len(times) == 6


@pytest.mark.parametrize(("faster", "want"), [(0.985, 14.0), (0.97, 4.0)])
def test_noise_leaves_the_usual_value(faster, want):
    spent = {"a": {14.0: 1.0, 4.0: faster}}
    assert tune.best("bfs_alpha", trial(spent, (4.0,), "a"), by_call)[0] == want


def test_values_of_one_form_are_measured_once():
    """Mean rows of 10 and 40; by these times the second shape serves 10, the fourth 40."""
    counted, spent = [], {"10": (2, 1, 3, 3), "40": (9, 9, 2, 1)}

    def case(mean):
        def call():
            counted.append(mean)
            return spent[str(mean)][form(constants().spmv_bounds)]

        def form(bounds):
            return sum(mean > bound for bound in bounds)

        return tune.Case(call, (), form)

    values = tuple(itertools.combinations((4, 12, 24, 32, 64), 3))
    value, _ = tune.best(
        "spmv_bounds", tune.Trial(values, lambda: {"10": case(10), "40": case(40)}), by_call
    )
    assert value == (4, 12, 24) and len(counted) == 4  # of ten triples


def test_what_is_measured_is_stored_for_this_device_alone(folder):
    spent = {"a": {14.0: 1.0, 8.0: 0.5}}
    report = tune.tuned(H200, {"bfs_alpha": trial(spent, (8.0,), "a")}, by_call)
    assert report["file"] == str(folder / "tuned.json") and report["bfs_alpha"] == 8.0
    assert {row["form"]: row["microseconds"] for row in report["measured"]} == {
        "14.0": 1e6,
        "8.0": 5e5,
    }
    tuning.store(A100, Constants(spmm_waves=4))
    with on("NVIDIA H200"):
        assert constants() == Constants(bfs_alpha=8.0)
        assert tile_for(32).waves == 2
    with on("NVIDIA A100-SXM4-80GB"):
        assert constants() == Constants(spmm_waves=4)
        assert tile_for(32).waves == 4
        with using(Constants(spmm_waves=3)):
            assert tile_for(32).waves == 3
    with on("NVIDIA H200", 16):  # a part of the GPU
        assert constants() == Constants()


def test_another_process_reads_them(folder):
    tuning.store(H200, Constants(spmv_bounds=(1, 2, 3)))
    code = (
        "from pallas_kernels.tuning import stored, path; print(*stored(path()).values(), sep='|')"
    )
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(Constants(spmv_bounds=(1, 2, 3)))


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[1]",
        json.dumps({"NVIDIA H200, 132 multiprocessors": {"unheard of": 1}}),
        json.dumps({"NVIDIA H200, 132 multiprocessors": {"bfs_alpha": -1}}),
        json.dumps({"NVIDIA H200, 132 multiprocessors": {"bfs_alpha": "14"}}),
        json.dumps({"NVIDIA H200, 132 multiprocessors": {"spmv_bounds": [1, 2]}}),
    ],
)
def test_a_file_that_cannot_be_read_is_ignored_with_a_warning(folder, text):
    folder.mkdir()
    (folder / "tuned.json").write_text(text)
    with on("NVIDIA H200"), pytest.warns(UserWarning, match="jaxspv tune"):
        assert constants() == Constants()


def test_without_a_gpu_it_says_so(capsys):
    if jax.default_backend() == "gpu":
        pytest.skip("there is a GPU")
    assert main(["tune"]) == 2
    assert capsys.readouterr().err == (
        "jaxspv: error: there is no GPU to measure: JAX runs on cpu.\n"
    )


def test_times_are_those_of_compiled_calls(monkeypatch):
    monkeypatch.setattr(tune, "CALLS", 2)
    traced = []

    def call(x):
        traced.append(constants().bfs_alpha)
        return x + 1

    case = tune.Case(call, (jnp.ones(3),))
    for alpha in (1.0, 2.0):
        with using(Constants(bfs_alpha=alpha)):
            assert 0 < tune.Timed()(case)() < 60
    assert traced == [1.0, 2.0]  # traced anew each time, and no more


def test_every_constant_is_tried_on_graphs(monkeypatch):
    """Lowered for a GPU with every case, on small graphs."""
    small = rmat(jax.random.key(0), 5, 4)
    monkeypatch.setattr(tune, "_rmat", lambda scale, edges=16: small)
    monkeypatch.setattr(tune, "_grid", lambda side: tune.grid2d(jax.random.key(0), 6))
    trials = tune.trials()
    assert set(trials) == set(Constants._fields)
    for name, trial in trials.items():
        cases = trial.cases()
        for case in list(cases.values())[-2:]:
            values = Constants()._replace(**{name: trial.values[0]})
            with on("NVIDIA H200"), using(values):
                traced = jax.jit(lambda *a, case=case: case.call(*a)).trace(*case.operands)
                text = traced.lower(lowering_platforms=("cuda",)).as_text()
            assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
def test_it_runs_on_a_gpu(folder, monkeypatch):
    some = tune.trials()["solo_pieces"]
    monkeypatch.setattr(tune, "trials", lambda: {"solo_pieces": some})
    assert main(["tune", "--json"]) == 0
    assert (folder / "tuned.json").exists()


def test_graphs_of_all_sizes_come_from_one_draw(monkeypatch):
    monkeypatch.setattr(tune, "SCALE", 9)
    tune._drawn.cache_clear()
    tune._rmat.cache_clear()
    try:
        for scale, edges in ((9, 16), (7, 40)):
            A = tune._rmat(scale, edges).to_scipy()
            assert A.shape == (1 << scale, 1 << scale) and (abs(A - A.T)).nnz == 0
            assert 1 << scale < A.nnz <= 2 * edges << scale
            degrees = np.diff(A.indptr)
            assert degrees.max() > 4 * degrees.mean()
    finally:
        tune._drawn.cache_clear()
        tune._rmat.cache_clear()
