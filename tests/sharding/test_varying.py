"""Loops inside of a `shard_map` that checks what varies: values that differ between devices."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.fast

PROGRAM = """
import sys, traceback
import jax, jax.numpy as jnp, numpy as np, jaxspv as jsp
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((2,), ("d",), axis_types=(AxisType.Auto,))
A = jsp.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0], shape=(3, 3))
sample, walk = jsp.learning.sample_neighbors, jsp.learning.random_walk
x0 = jnp.array([0, jnp.inf, jnp.inf])

def slope(f):
    return jax.grad(lambda v: f(v)[0])

def rank(values=A.data, personalization=None, damping=0.85):
    how = {"personalization": personalization, "damping": damping}
    return jsp.pagerank(A.with_data(values), **how).scores

def closed(d):
    return jsp.closure(A.with_data(d), "min_plus", start=0).x[1:]

def fixed(d):
    return jsp.fixpoint(A.with_data(d), x0, "min_plus", monotone=True).x[1:]

def solved(d):
    how = {"update": lambda old, y, i, b, sums: b + jnp.maximum(y, 0.1), "operands": (jnp.ones(3),)}
    return jsp.fixpoint(A.with_data(d / 10), jnp.ones(3), until=jsp.until.residual(1e-6), **how).x

def attended(d):
    return (jsp.learning.attention(every, d[:, None], ones, d[:, None] ** 2) ** 2).sum()

def twice(d):
    return jax.grad(lambda d: (jax.grad(attended)(d) ** 2).sum())(d)

every, ones = jsp.from_dense(np.ones((3, 3))), jnp.ones((3, 1))
keys = jax.random.split(jax.random.key(0), 2)
data = jnp.array([[1.0, 2, 3], [2, 5, 1]])
shares = jnp.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
small = jnp.array([0.05, 0.1])
CALLS = {
    "walk": (lambda k: walk(k, A, jnp.array([0]), 3), keys),
    "biased walk": (lambda k: walk(k, A, jnp.array([0]), 3, p=0.5), keys),
    "neighbors": (lambda k: sample(k, A, jnp.array([0]), 40).nodes[0], keys),
    "weighted": (lambda k: sample(k, A, jnp.array([0]), 2, weights=A.data).nodes[0], keys),
    "katz": (lambda t: jsp.katz_centrality(A, alpha=t).scores, small),
    "eigenvector": (lambda d: jsp.eigenvector_centrality(A.with_data(d)).scores, data),
    "hits": (lambda d: jsp.hits(A.with_data(d))[0], data),
    "closure": (closed, data),
    "fixpoint": (fixed, data),
    "slope of katz": (slope(lambda t: jsp.katz_centrality(A, alpha=t).scores), small),
    "slope of closure": (slope(closed), data),
    "slope of monotone": (slope(fixed), data),
    "slope of fixpoint": (slope(solved), data),
    "slope of soft_sssp": (slope(lambda t: jsp.soft_sssp(A, 0, t).distances[1:]), 5 * small),
    "slopes of attention": (twice, data / 5),
    "slope by values": (slope(rank), data),
    "slope by damping": (slope(lambda t: rank(damping=t)), 5 * small),
    "slope by shares": (slope(lambda p: rank(personalization=p)), shares),
}

def compare(f, x):
    run = jax.shard_map(lambda v: f(v[0])[None], mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    np.testing.assert_allclose(jax.jit(run)(x), [f(v) for v in x], rtol=1e-5, atol=1e-6)

def compare_sum(f, d, x):
    run = jax.shard_map(lambda d, x: f(d, x[0]), mesh=mesh, in_specs=(P(), P("d")), out_specs=P())
    np.testing.assert_allclose(jax.jit(run)(d, x), sum(f(d, v) for v in x), rtol=1e-4, atol=1e-6)

for name in sys.argv[1:]:
    try:
        if name in CALLS:
            compare(*CALLS[name])
        else:
            compare_sum(lambda d, p: slope(lambda d: rank(d, p))(d), data[0], shares)
        print(name, flush=True)
    except Exception:
        traceback.print_exc()
"""
NAMES = [
    "walk",
    "biased walk",
    "neighbors",
    "weighted",
    "katz",
    "eigenvector",
    "hits",
    "closure",
    "fixpoint",
    "slopes of attention",
    *(
        f"slope {what}"
        for what in (
            "of katz",
            "of closure",
            "of monotone",
            "of fixpoint",
            "of soft_sssp",
            "by values",
            "by damping",
            "by shares",
            "of replicated values",
        )
    ),
]


@pytest.fixture(scope="module")
def run(request):
    """The one process with two devices: it makes the calls that are asked for."""
    here = [item for item in request.session.items if item.path == request.path]
    names = [item.callspec.params["name"] for item in here]
    flags = "--xla_force_host_platform_device_count=2 " + os.environ.get("XLA_FLAGS", "")
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=500,
    )


@pytest.mark.parametrize("name", NAMES)
def test_equal_to_one_device(run, name):
    assert name in run.stdout.splitlines(), run.stderr[-3000:]
