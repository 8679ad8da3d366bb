"""Single-source shortest paths, non-negative weights, in one launch (see `rounds.py`)."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from ..layouts.lengths import later
from ..simt.launch import launch
from ..simt.primitives import Simt
from ..simt.typed import Arrays
from . import any_degree, by_weight, low_degree
from .problem import Config, Problem, Rule

DEFAULT_RULE = Rule()


def default_config(n: int, nnz: int, *, low_degree: bool) -> Config:
    """Config from the sizes. Rows of more than one quad make a hop longer."""
    return Config(hops=8 if low_degree and nnz > 4 * n else 16)


def sssp(
    graph: Sequence[jax.Array],
    source: jax.Array,
    delta: jax.Array,
    *,
    prepared: dict[str, jax.Array] | None = None,
    targets: jax.Array | None = None,
    rule: Rule = DEFAULT_RULE,
    config: Config | None = None,
) -> tuple[jax.Array, jax.Array | None, jax.Array, jax.Array]:
    """(distances[n], parents int32[n] or None, steps int32, status int32): d[source] = 0, d[v] =
    min of d[u] + w over u -> v.

    graph: (indptr, indices, weights float32[nnz] or int32[nnz], none negative or NaN). delta: the
    width of a bucket, of the dtype of weights (`delta_of`); inf or iinfo.max: a single bucket,
    which is Bellman-Ford on the vertices whose distance fell. prepared: what `prepare_sssp`
    computed once. Unreached: inf, or iinfo.max, where integer sums end as well. float32 distances
    are bit-equal to Dijkstra's whatever delta. A source that is no vertex reaches nothing. steps
    counts the rounds of relaxation.

    rule.parents: a tree of shortest paths: parents[v] is a vertex u with d[u] + w = d[v] for an
    edge u -> v, the source its own, -1 where unreached. Which one may vary from run to run.
    rule.symmetric: every edge is there in both directions with the same weight, which makes the
    search for parents cheaper; not checked. targets int32[k] and rule.limit(labels, infinity,
    minimum, maximum): the distances up to limit of those of the targets are right, the others are
    at or above the right ones and may lack a parent (-1); labels is a list of k values that know
    minimum and maximum.
    """
    weights = graph[2]
    rule = rule._replace(real=weights.dtype == jnp.float32)
    operands = {
        "source": jnp.atleast_1d(source).astype(jnp.int32),
        "delta": jnp.atleast_1d(delta).astype(weights.dtype),
    }
    if targets is not None and targets.shape[0]:
        operands["targets"] = jnp.asarray(targets, jnp.int32)
    out = run((graph, prepared or {}), operands, rule, config, "sssp")
    distances = out.get("distances", out["labels"])
    if rule.real:
        distances = lax.bitcast_convert_type(distances, jnp.float32)
    tree = out.get("parents", out["noted"]) if rule.parents else None
    return distances, tree, out["rounds"], out["status"]


def run(graph, operands, rule: Rule, config: Config | None, name: str):
    """One launch: results by name, among them rounds and status.

    graph: ((indptr, indices, weights), prepared).
    """
    (indptr, indices, weights), prepared = graph
    n, nnz, low = indptr.shape[0] - 1, indices.shape[0], "adjacency" in prepared
    config = config or default_config(n, nnz, low_degree=low)
    fixed = {"n": n, "later": later(n, nnz), "rule": rule}
    fixed["targets"] = operands["targets"].shape[0] if "targets" in operands else 0
    if low:
        adjacency = prepared["adjacency"]
        fixed |= {"quads": adjacency.shape[1] // 4, "linked": adjacency.shape[0] > n}
        names = ("adjacency", "lengths", *(["rank"] if "source" in operands else []), "order")
        operands |= {x: prepared[x] for x in names if x in prepared}
    else:
        operands |= {"indptr": indptr, "indices": indices, "weights": weights}
    ordered = "parts" in prepared and rule.symmetric and not (rule.limit or rule.extend)
    if ordered:
        config = dataclasses.replace(config, span=min(config.span, by_weight.SPAN))
        operands |= {x: prepared[x] for x in ("indices", "weights", "least", "parts")}
    c = Problem(**dataclasses.asdict(config), **fixed)
    entries = n if low else 4 * any_degree.capacity(c, nnz)
    # marks: last round that queued a vertex; 1 if it is in far. queue, far: two of each. noted:
    # parents (low_degree), or pairs of parent and label
    outputs = {"labels": n, "marks": 2 * n, "queue": 2 * entries, "far": 2 * n}
    if "order" in operands:
        outputs["distances"] = n
    if rule.parents:
        outputs["noted"] = n if low else 2 * n
        if "order" in operands or not low:
            outputs["parents"] = n

    def kernel(k: Simt, m: Arrays):
        other = by_weight.ByWeight if ordered else any_degree.AnyDegree
        form = low_degree.LowDegree if low else other
        steps, ok = form(k, c, m).run()
        k.results(m, rounds=steps)
        return ok

    return launch(
        kernel,
        operands,
        outputs | {"rounds": (), "status": ()},
        **c.form(),
        shared_words=(low_degree if low else any_degree).shared_words(c),
        name=f"{name}_{'low' if low else 'any'}_degree",
    )
