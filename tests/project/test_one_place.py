"""What CONTRIBUTING calls one place is one: toys added there go through the suites unasked."""

import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toys

import jaxspv as jsp
from jaxspv._core.compat import kernels_refused

ROOT = pathlib.Path(__file__).parents[2]
FORMAT = (
    "tests/formats/test_formats.py",
    "tests/ops/products/test_mxv.py",
    "tests/ops/products/test_layers.py",
    "tests/gradients/test_gradients.py",
)
MONOID = (
    "tests/algebra/test_monoids.py::test_laws[int32]",
    "tests/algebra/test_monoids.py::test_reductions_are_folds[int32]",
    "tests/algebra/test_monoids.py::test_every_monoid_has_an_oracle_and_a_name_of_its_own",
)


def suites(*arguments):
    """The number of tests that passed with the toys entered; all that ran must."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))}
    env.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "toys", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, "-m", "long or not long", *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
    return int(re.search(r"(\d+) passed", run.stdout).group(1))


@pytest.mark.long
def test_a_format_joins_the_suites_of_formats_products_and_gradients():
    assert suites(*FORMAT, "-k", "toy and not thorough") > 40
    assert suites("tests/formats/test_formats.py", "-k", "pair or capacities or dtypes") > 5


@pytest.mark.long
def test_a_monoid_joins_the_laws_and_reductions():
    assert suites(*MONOID) == len(MONOID)
    assert suites("tests/algebra/test_monoids.py", "-k", "toy_union") >= 1


DENSE = np.array([[0, 2, 0, 6], [4, 0, 0, 0], [0, 8, 0, 3]], np.float32)


def test_an_operation_has_the_write_rule():
    """Masks, accumulators, `out` and `replace` are those of `apply` with the same operator."""
    A, out = jsp.from_dense(DENSE), jsp.from_dense(np.eye(3, 4, dtype=np.float32))
    for options in (
        {},
        {"mask": jsp.structure(out)},
        {"mask": ~jsp.structure(out), "accum": jnp.add, "out": out},
        {"mask": jsp.structure(out), "out": out, "replace": True},
    ):
        got = toys.halve(A, **options)
        want = jsp.apply(A, lambda x: x / 2, **options)
        np.testing.assert_array_equal(got.todense(), want.todense())
    assert type(toys.halve(A.asformat("coo"))) is jsp.COO


def test_an_implementation_is_dispatched_batched_differentiated_and_explained():
    x = jnp.arange(5.0)
    np.testing.assert_array_equal(toys.doubled(x), 2 * x)
    np.testing.assert_array_equal(toys.doubled(x, backend="xla"), 2 * x)
    np.testing.assert_array_equal(jax.vmap(toys.doubled)(jnp.stack([x, x])), 2 * jnp.stack([x, x]))
    slope = jax.grad(lambda x: toys.doubled(x).sum())(x)
    np.testing.assert_array_equal(slope, 2 * np.ones(5))
    plan = jsp.explain(toys.doubled.__call__, x)
    assert plan.on("cpu").name == "turns" and plan.on("tpu").name == "twice"
    assert plan.on("cuda").backend == ("pallas" if kernels_refused() is None else "xla")


def test_a_kernel_is_interpreted_and_lowered():
    x = jnp.arange(300, dtype=jnp.float32)
    np.testing.assert_array_equal(toys.double_by_kernel(x, interpret=True), 2 * x)
    if kernels_refused() is None:
        traced = jax.jit(lambda x: toys.doubled(x)).trace(x)
        assert "mosaic_gpu" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_an_algorithm_of_operations_runs_in_transformations():
    A = jsp.read_mtx(jsp.bundled("karate"))
    G = jsp.prepare(A, for_="bfs")
    hops = [int(jsp.bfs(A, s).levels.max()) for s in range(4)]
    assert [float(toys.far(G, s)) for s in range(4)] == [2.0 * h for h in hops]
    found = jax.jit(jax.vmap(lambda s: toys.far(G, s)))(jnp.arange(4))
    np.testing.assert_array_equal(found, 2.0 * np.array(hops))
