"""Values sampled at entries, and attention over the entries of a row: ours by backend.

float32: `sddmm` with 32 and 128 features, `attention` of 8 heads of 16 features by dot products, by
scores of one number a head (a graph attention layer) and by scores that add over features (GATv2),
each with and without its gradients. The XLA form verifies the kernels, and is timed beside them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from ..harness import Candidate, jitted, measure
from ..options import Options
from ..suite import Workload

HEADS, FEATURES = 8, 16
WIDTHS = (32, 128)
MOST = 4_000_000  # entries up to which the XLA form of attention runs: it takes seconds


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph, a table a computation."""
    S = workload.matrix()
    A = jsp.from_scipy(S)
    records = []
    for case, (call, operands) in cases(A).items():
        found = candidates(call, (A, *operands), S.nnz <= MOST or case.startswith("sddmm"), options)
        for record in measure(found, **options.timing()):
            head = {"benchmark": f"attention: {case}", "n": S.shape[0], "entries": S.nnz}
            records.append({**record, **head})
    return records


def cases(A: jsp.CSR) -> dict[str, tuple[Callable[..., Any], tuple[jax.Array, ...]]]:
    """name -> (function of the backend, the matrix and arrays; arrays)."""
    keys = iter(jax.random.split(jax.random.key(0), 16))
    n = A.shape[0]

    def normal(*shape):
        return jax.random.normal(next(keys), (n, *shape), jnp.float32)

    Q, K, V = (normal(HEADS, FEATURES) for _ in range(3))
    ends = normal(HEADS), normal(HEADS), V
    found = {f"sddmm, {k} features": (_sddmm, (normal(k), normal(k))) for k in WIDTHS}
    weighted = normal(HEADS, FEATURES)[0], Q, K, V
    attended = (
        ("dot products", _dots, (Q, K, V)),
        ("scores", _scores, ends),
        ("scores over features", _scores_v2, weighted),
    )
    for name, call, operands in attended:
        found[f"attention by {name}"] = call, operands
        found[f"attention by {name}, with gradients"] = functools.partial(_slopes, call), operands
    return found


def _sddmm(backend, A, X, Y):
    return jsp.sddmm(A, X, Y, backend=backend).data


def _dots(backend, A, Q, K, V):
    return jsp.learning.attention(A, Q, K, V, backend=backend)


def _score(q, k):
    return jax.nn.leaky_relu(q + k, 0.2)


def _scores(backend, A, q, k, V):
    return jsp.learning.attention(A, q, k, V, score=_score, backend=backend)


def _scores_v2(backend, A, a, Q, K, V):
    def score(q, k):
        return jnp.sum(a * jax.nn.leaky_relu(q + k, 0.2), axis=-1)

    return jsp.learning.attention(A, Q, K, V, score=score, backend=backend)


def _slopes(call, backend, A, *operands):
    def loss(*operands):
        return jnp.sum(jnp.sin(call(backend, A, *operands)))

    return jax.value_and_grad(loss, argnums=tuple(range(len(operands))))(*operands)


def candidates(call, operands, beside: bool, options: Options) -> list[Candidate]:
    """Ours as it is chosen, and where it pays the XLA form, which it must agree with."""
    backends = {"jaxspv": options.backend} | ({"XLA": "xla"} if beside else {})
    programs = {name: jitted(functools.partial(call, b)) for name, b in backends.items()}
    want = jax.tree.map(np.asarray, programs["XLA"](*operands)) if beside else None

    def check(result):
        found = [np.asarray(leaf) for leaf in jax.tree.leaves(result)]
        assert all(np.isfinite(leaf).all() for leaf in found)
        if want is not None:
            for got, right in zip(found, jax.tree.leaves(want), strict=True):
                off = np.abs(got - right).max(initial=0) / np.abs(right).max(initial=1e-30)
                assert off <= 1e-4, f"differs from XLA by {off:.1e}"

    return [
        Candidate(name, lambda p=p: jax.block_until_ready(p(*operands)), check)
        for name, p in programs.items()
    ]
