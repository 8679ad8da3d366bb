"""Values sampled at entries, attention over the entries of a row, neighbours: ours by backend.

float32: `sddmm` with 32 and 128 features, `attention` of 8 heads of 16 features by dot products and
by scores of one number a head (a graph attention layer), each with and without its gradients, and
100,000 seeds with fan-outs (15, 10). The XLA form verifies the kernels, and is timed beside them.
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
SEEDS, FANOUTS = 100_000, (15, 10)
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
    return records + sampled(A, S, options)


def cases(A: jsp.CSR) -> dict[str, tuple[Callable[..., Any], tuple[jax.Array, ...]]]:
    """name -> (function of the backend, the matrix and arrays; arrays)."""
    keys = iter(jax.random.split(jax.random.key(0), 16))
    n = A.shape[0]

    def normal(*shape):
        return jax.random.normal(next(keys), (n, *shape), jnp.float32)

    Q, K, V = (normal(HEADS, FEATURES) for _ in range(3))
    ends = normal(HEADS), normal(HEADS), V
    found = {f"sddmm, {k} features": (_sddmm, (normal(k), normal(k))) for k in WIDTHS}
    for name, call, operands in (("dot products", _dots, (Q, K, V)), ("scores", _scores, ends)):
        found[f"attention by {name}"] = call, operands
        found[f"attention by {name}, with gradients"] = functools.partial(_slopes, call), operands
    return found


def _sddmm(backend, A, X, Y):
    return jsp.sddmm(A, X, Y, backend=backend).data


def _dots(backend, A, Q, K, V):
    return jsp.attention(A, Q, K, V, backend=backend)


def _score(q, k):
    return jax.nn.leaky_relu(q + k, 0.2)


def _scores(backend, A, q, k, V):
    return jsp.attention(A, q, k, V, score=_score, backend=backend)


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


def sampled(A: jsp.CSR, S: Any, options: Options) -> list[dict[str, Any]]:
    """The record of sampling; what is drawn must be neighbours."""
    seeds = jax.random.randint(jax.random.key(1), (SEEDS,), 0, A.shape[0], jnp.int32)
    program = jitted(lambda key, A, seeds: jsp.sample_neighbors(key, A, seeds, FANOUTS))

    def call():
        return jax.block_until_ready(program(jax.random.key(0), A, seeds))

    def check(result):
        first = np.asarray(result.nodes[0][:100])
        for seed, drawn in zip(np.asarray(seeds)[:100], first, strict=True):
            near = set(S.indices[S.indptr[seed] : S.indptr[seed + 1]].tolist())
            assert {v for v in drawn.tolist() if 0 <= v < S.shape[0]} <= near

    head = {"benchmark": "attention: neighbours of 100,000 seeds, 15 and 10"}
    head |= {"n": S.shape[0], "entries": S.nnz}
    return [{**r, **head} for r in measure([Candidate("jaxspv", call, check)], **options.timing())]
