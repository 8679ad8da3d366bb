"""Layers of graph networks, forwards and with their gradients: GCN, GraphSAGE and GAT.

float32, 128 features in and out, GAT with 8 heads of 16. Ours: products with a normalised matrix,
and `attention` by scores of the two ends. Beside them the same layers by `segment_sum` and
`segment_max`, as one writes them in JAX, those of products by BCOO, and PyG's where it is installed
beside JAX on a GPU. Self loops and normalisation are done before the clock starts, in all of them.
A result is compared with the layers in float64 at some vertices, its slopes with a difference;
PyG's layers have weights of their own, and are not compared.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

from .. import baselines
from ..harness import Candidate, measure
from ..options import Options
from ..suite import Workload
from . import _products

FEATURES, HEADS = 128, 8
LEAKY = 0.2
HELD = 2**29  # numbers at entries that the layers of `segment_sum` and BCOO may hold
LOOKED_AT = 200  # vertices, and as many of the largest
BOUND = 2e-4  # of the largest number of a result


class _Layer(NamedTuple):
    """One kind of layer.

    Attributes:
        matrix: of the adjacency, in SciPy, what a layer multiplies by or attends along.
        weights: shapes of its parameters.
        forms: name -> `form(x, (matrix, weights))`.
    """

    matrix: Callable[[sp.csr_array], sp.csr_array]
    weights: tuple[tuple[int, ...], ...]
    forms: dict[str, Callable[..., Any]]


# ---- The matrices ----


def _looped(S: sp.csr_array) -> sp.csr_array:
    M = sp.csr_array((S + sp.eye_array(S.shape[0])) > 0, dtype=np.float32)
    M.sort_indices()
    return M


def _scaled(S: sp.csr_array, left: np.ndarray, right: np.ndarray) -> sp.csr_array:
    return sp.csr_array(sp.diags_array(left) @ S @ sp.diags_array(right), dtype=np.float32)


def _symmetric(S: sp.csr_array) -> sp.csr_array:
    M = _looped(S)
    degree = M.sum(axis=1)
    return _scaled(M, degree**-0.5, degree**-0.5)


def _means(S: sp.csr_array) -> sp.csr_array:
    M = sp.csr_array(S != 0, dtype=np.float32)
    return _scaled(M, 1 / np.maximum(M.sum(axis=1), 1), np.ones(S.shape[1]))


# ---- The layers: x of (n, FEATURES) first ----


def _product(x, operand):
    A, (W,) = operand
    return A @ (x @ W)


def _joined(x, operand):
    A, (own, others) = operand
    return x @ own + A @ (x @ others)


def _score(q, k):
    return jax.nn.leaky_relu(q + k, LEAKY)


def _attended(x, operand):
    A, (W, ask, answer) = operand
    h = (x @ W).reshape(-1, *ask.shape)
    return jsp.learning.attention(A, (h * ask).sum(-1), (h * answer).sum(-1), h, score=_score)


class _Segments:
    """A matrix by rows and columns of its entries: `@` is a gather and a `segment_sum`."""

    def __init__(self, row, col, data, n):
        self.row, self.col, self.data, self.n = row, col, data, n

    def __matmul__(self, X):
        return self.sum(self.data[:, None] * X[self.col])

    def sum(self, terms):
        return jax.ops.segment_sum(terms, self.row, self.n, indices_are_sorted=True)


jax.tree_util.register_pytree_node(
    _Segments, lambda s: ((s.row, s.col, s.data), s.n), lambda n, leaves: _Segments(*leaves, n)
)


def _attended_by_segments(x, operand):
    A, (W, ask, answer) = operand
    h = (x @ W).reshape(-1, *ask.shape)
    score = _score((h * ask).sum(-1)[A.row], (h * answer).sum(-1)[A.col])
    most = jax.ops.segment_max(score, A.row, A.n, indices_are_sorted=True)
    weight = jnp.exp(score - jax.lax.stop_gradient(most)[A.row])
    return A.sum((weight / A.sum(weight)[A.row])[..., None] * h[A.col])


SQUARE, ENDS = (FEATURES, FEATURES), (HEADS, FEATURES // HEADS)
PRODUCTS = ("jaxspv", "BCOO", "segment_sum")
LAYERS = {
    "GCN": _Layer(_symmetric, (SQUARE,), dict.fromkeys(PRODUCTS, _product)),
    "SAGE": _Layer(_means, (SQUARE, SQUARE), dict.fromkeys(PRODUCTS, _joined)),
    "GAT": _Layer(
        _looped, (SQUARE, ENDS, ENDS), {"jaxspv": _attended, "segment_sum": _attended_by_segments}
    ),
}


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph, a table a layer."""
    S = workload.matrix()
    records = []
    for name, layer in LAYERS.items():
        M = layer.matrix(S)
        for slopes in (False, True):
            case = f"gnn: {name}" + (", with gradients" if slopes else "")
            head = {"benchmark": case, "n": S.shape[0], "entries": M.nnz}
            with jax.default_matmul_precision("highest"):  # as PyG's: on a GPU JAX takes 10 bits
                found = list(_candidates(name, layer, M, slopes, options))
                records += [{**r, **head} for r in measure(found, **options.timing())]
    return records


def _candidates(
    name: str, layer: _Layer, M: sp.csr_array, slopes: bool, options: Options
) -> Iterator[Candidate]:
    rng, n = np.random.default_rng(0), M.shape[0]
    x = rng.standard_normal((n, FEATURES), np.float32)
    weights = [rng.standard_normal(s, np.float32) / np.float32(s[0]) ** 0.5 for s in layer.weights]
    given = tuple(jnp.asarray(w) for w in weights)
    forward = _check_forward(name, M, x, weights)
    repeats = options.repeats or 1
    for form, product in layer.forms.items():
        if form != "jaxspv" and (not options.baselines or M.nnz * FEATURES > HELD):
            continue
        matrix, check = _operand(form, M), forward
        if slopes:
            check, product = _check_slopes(product, matrix, given, x), _with_slopes(product)
        start = jnp.zeros((), jnp.float32)
        call = _products.call(_shifting(product), start, (jnp.asarray(x), matrix, given), repeats)
        yield Candidate(form, call, check, repeats, None, {"inside": repeats > 1})
    if options.baselines and has_pyg():
        call, notes = pyg(name, M, x, slopes, repeats), {"verified": False}
        yield Candidate("PyG (unchecked)", call, lambda result: None, repeats, None, notes)


def _shifting(product: Callable[..., Any]) -> Callable[..., Any]:
    """What a chain of layers shifts is their weights: x would have to be written anew for each."""

    def shifted(shift, operand):
        x, matrix, weights = operand
        return product(x, (matrix, tuple(w + shift for w in weights)))

    return shifted


def _operand(form: str, M: sp.csr_array) -> Any:
    if form == "BCOO":
        return baselines.bcoo_spmv(M)[1]
    if form == "segment_sum":
        row = np.repeat(np.arange(M.shape[0], dtype=np.int32), np.diff(M.indptr))
        return _Segments(*map(jnp.asarray, (row, M.indices, M.data)), M.shape[0])
    return jsp.prepare(jsp.from_scipy(M), for_=())


def _loss(product: Callable[..., Any], x: Any, matrix: Any, weights: Any) -> Any:
    return jnp.mean(jnp.sin(product(x, (matrix, weights))))


def _with_slopes(product: Callable[..., Any]) -> Callable[..., Any]:
    """By the features and by the weights."""

    def slopes(x, operand):
        matrix, weights = operand
        value = lambda x, weights: _loss(product, x, matrix, weights)  # noqa: E731
        return jax.grad(value, (0, 1))(x, weights)

    return slopes


# ---- Checks ----


def _check_forward(name, M, x, weights):
    """Some vertices and the largest, in float64."""
    spread = np.linspace(0, M.shape[0] - 1, min(M.shape[0], LOOKED_AT)).astype(int)
    rows = np.unique(np.concatenate([spread, np.argsort(np.diff(M.indptr))[-LOOKED_AT:]]))
    x, weights, A = x.astype(float), [w.astype(float) for w in weights], M[rows].astype(float)
    if name == "GAT":
        h = (x @ weights[0]).reshape(-1, *ENDS)
        ask, answer = ((h * w).sum(-1) for w in weights[1:])
        want = np.zeros((rows.size, *ENDS))
        for k, i in enumerate(rows):
            near = A.indices[A.indptr[k] : A.indptr[k + 1]]
            score = ask[i] + answer[near]
            weight = np.exp(np.where(score > 0, score, LEAKY * score))
            want[k] = np.einsum("eh,ehf->hf", weight / weight.sum(0), h[near])
    else:
        want = A @ (x @ weights[-1])
        if name == "SAGE":
            want += x[rows] @ weights[0]

    def check(Y):
        off = np.abs(np.asarray(Y[jnp.asarray(rows)], float) - want).max()
        assert off <= BOUND * np.abs(want).max(), f"off by {off:.1e}"

    return check


def _check_slopes(product, matrix, weights, x):
    """The derivative along themselves against a difference of the function that is checked."""

    def check(slopes):
        assert all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(slopes))
        norm = jnp.sqrt(sum(jnp.vdot(v, v) for v in jax.tree.leaves(slopes)))
        at = jnp.asarray(x), weights
        both = []
        for step in (-1e-2, 1e-2):
            moved = jax.tree.map(lambda v, d, s=step: v + s * d / norm, at, slopes)
            both.append(
                float(jax.jit(_loss, static_argnums=0)(product, moved[0], matrix, moved[1]))
            )
        slope = (both[1] - both[0]) / 2e-2
        assert abs(slope - float(norm)) <= 0.05 * float(norm), f"{slope} is not {norm}"

    return check


# ---- PyG ----


def has_pyg() -> bool:
    """Whether PyG is installed and both PyTorch and JAX run on a GPU."""
    return baselines.has_torch() and importlib.util.find_spec("torch_geometric") is not None


def pyg(name, M, x, slopes, repeats) -> Callable[[], Any]:
    """`repeats` calls of PyG's layer in a row, then one wait; weights and result are its own."""

    @functools.cache
    def made():
        import torch
        from torch_geometric.nn import GATConv, GCNConv, SAGEConv

        row = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
        edges = torch.from_numpy(np.stack([M.indices.astype(np.int64), row])).cuda()
        features = torch.from_numpy(x).cuda().requires_grad_(slopes)
        kinds = {
            "GCN": lambda n: GCNConv(n, n, bias=False, normalize=False),
            "SAGE": lambda n: SAGEConv(n, n, bias=False),
            "GAT": lambda n: GATConv(n, n // HEADS, HEADS, bias=False, add_self_loops=False),
        }
        values = (torch.from_numpy(M.data).cuda(),) if name == "GCN" else ()
        return torch, kinds[name](FEATURES).cuda(), (features, edges, *values)

    def call():
        torch, layer, given = made()
        for _ in range(repeats):
            layer.zero_grad()
            given[0].grad = None
            with torch.set_grad_enabled(slopes):
                result = layer(*given)
            if slopes:
                torch.sin(result).mean().backward()
        torch.cuda.synchronize()
        return float(result.detach().sum())

    return call
