"""What an import loads: kernels for GPUs only where a plan asks for a GPU."""

import os
import subprocess
import sys

import pytest

from jaxspv.native import bind

CALLS = """
import sys, numpy as np, jax, jaxspv as jsp
A = jsp.read_mtx(jsp.bundled("karate"))
x = np.ones(A.shape[0], np.float32)
G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank", "fixpoint", "mxv"))
jsp.bfs(G, 0), jsp.sssp(G, 0), jsp.pagerank(G), jsp.connected_components(A), jsp.louvain(A)
A @ x, x @ A, A @ A, A @ np.ones((A.shape[0], 2), np.float32), jsp.mxv(A, x, "min_plus")
jsp.triangle_count(A), jsp.minimum_spanning_forest(A), jsp.greedy_color(A)
jax.grad(lambda w: jsp.sssp(A.with_data(w), 0).distances.sum())(A.data)
loaded = [m for m in sys.modules if m.startswith("pallas_kernels.") or "experimental.pallas" in m]
print(*loaded)
jsp.explain("mxv", A, x)
assert "pallas_kernels.products.spmv" in sys.modules
"""
LIGHT = "layouts", "layouts.adjacency", "layouts.lengths", "layouts.ragged", "layouts.sliced_rows"
LIGHT += "simt", "simt.device"


@pytest.mark.fast
def test_a_cpu_imports_no_kernel():
    if reason := bind.refused():
        pytest.skip(reason)  # XLA's forms are asked for by name, and not found among a CPU's
    env = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {f"pallas_kernels.{name}" for name in LIGHT}
