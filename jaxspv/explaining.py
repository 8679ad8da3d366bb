"""`explain`: what would run for a call, on which platform, and why not something faster."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import jax

from ._core.dispatch import Plan
from ._core.platforms import Choice, recording, trace_level
from .algorithms.bfs.api import bfs
from .algorithms.centrality.betweenness import betweenness_centrality
from .algorithms.centrality.closeness import closeness_centrality
from .algorithms.centrality.spectral import eigenvector_centrality, hits, katz_centrality
from .algorithms.clustering.coefficients import average_clustering, clustering
from .algorithms.clustering.squares import square_clustering, triangle_centrality
from .algorithms.clustering.trusses import k_truss
from .algorithms.communities.label_propagation import label_propagation
from .algorithms.communities.louvain import louvain
from .algorithms.communities.modularity import modularity
from .algorithms.components import connected_components
from .algorithms.connectivity.bipartite import bipartition, is_bipartite
from .algorithms.connectivity.cores import core_number, k_core
from .algorithms.connectivity.strong import strongly_connected_components
from .algorithms.degrees import degree_histogram
from .algorithms.fixpoint.api import fixpoint
from .algorithms.independent.matching import maximum_bipartite_matching
from .algorithms.independent.sets import greedy_color, maximal_independent_set
from .algorithms.ordering.cuthill_mckee import reverse_cuthill_mckee
from .algorithms.pagerank.api import pagerank
from .algorithms.paths.acyclic import is_directed_acyclic_graph, topological_sort
from .algorithms.paths.eccentricities import diameter, eccentricity
from .algorithms.paths.reduction import transitive_reduction
from .algorithms.paths.several import k_shortest_paths
from .algorithms.paths.targets import all_pairs_shortest_path_length, astar, has_path
from .algorithms.similarity import similarity
from .algorithms.soft_sssp import soft_sssp
from .algorithms.sssp.api import sssp
from .algorithms.trees.forest import minimum_spanning_forest
from .algorithms.triangles import triangle_count
from .ops.aggregate import aggregate, softmax
from .ops.attention.api import attention
from .ops.mxm.api import mxm
from .ops.mxv.api import mxv, spmspv, spmv, vxm
from .ops.sddmm.api import sddmm

NAMED: dict[str, Callable[..., Any]] = {
    fn.__name__: fn
    for fn in (
        *(mxv, vxm, spmv, spmspv, mxm, sddmm, attention, aggregate, softmax),
        *(bfs, sssp, soft_sssp, pagerank, fixpoint),
        *(connected_components, triangle_count, strongly_connected_components),
        *(betweenness_centrality, closeness_centrality, clustering, average_clustering),
        *(k_truss, core_number, k_core, maximal_independent_set, greedy_color),
        *(eigenvector_centrality, katz_centrality, hits, eccentricity, diameter, similarity),
        *(transitive_reduction, all_pairs_shortest_path_length, astar, has_path),
        *(square_clustering, triangle_centrality, bipartition, is_bipartite),
        *(maximum_bipartite_matching, topological_sort, is_directed_acyclic_graph),
        *(reverse_cuthill_mckee, k_shortest_paths, degree_histogram),
        *(minimum_spanning_forest, label_propagation, louvain, modularity),
    )
}


def explain(op: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """The plan of a call: what runs on which platform, refusals with reasons, notes.

    The call itself is traced, abstractly, and what is written down is what the operations in it
    choose, choices inside of their implementations included. Nothing is computed but what an eager
    call would prepare and keep (`keep_prepared`).

    Args:
        op: an operation or algorithm, its name ("mxv", "bfs", ...), or any function of your own
            that calls some.
        *args, **kwargs: as for the call itself; `source` may be left out.

    Returns:
        A `Plan`; `print` it. `plan.on("cuda")`, `plan.on("cpu")` and `plan.on("tpu")` are the
        implementations for these platforms. A call that chooses several times has its plans in
        `plan.inside`.

    Raises:
        ValueError: nothing of that name can be explained.
        Whatever the call raises.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]], format="coo")
    >>> print(explain("mxv", A, jnp.ones(2)))
    spmv: xla/segments
      not pallas/groups: `prepare(A, for_=...)` has not found the entries in aligned pairs or fours
      not pallas/merge_path: COO does not list the entries of a row side by side
      not pallas/ell_rows: it reads rows that are padded, and A is a COO
      not pallas/sell_rows: it reads rows that are padded, and A is a COO
      not cpu/rows: COO does not list the entries of a row side by side
      not xla/diagonals: `prepare(A, for_=...)` has not found the entries on few diagonals
      not xla/row_bins: the rows are not arranged in bins: `prepare(A, for_=...)`
      not xla/pieces: COO does not list the entries of a row side by side
      not xla/ell: it reads rows that are padded, and A is a COO
      not xla/sell: it reads rows that are padded, and A is a COO
      note: `prepare(A, for_='mxv')` would arrange the rows in bins.
    """
    if isinstance(op, str) and op not in NAMED or not (isinstance(op, str) or callable(op)):
        raise ValueError(f"`op` must be a function or one of {sorted(NAMED)}; got {op!r}.")
    fn = NAMED[op] if isinstance(op, str) else op
    with recording() as record:

        def run():
            record.level = trace_level()
            return fn(*args, **_completed(fn, args, kwargs))

        jax.make_jaxpr(run)()
    return _joined(getattr(fn, "__name__", repr(fn)), record.choices, tuple(record.notes))


def _completed(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The keyword arguments with vertex 0 for a source that nobody named."""
    parameters = list(inspect.signature(fn).parameters)
    missing = "source" in parameters[len(args) :] and "source" not in kwargs
    return {**kwargs, "source": 0} if missing else kwargs


def _joined(name: str, choices: list[Choice], notes: tuple[str, ...]) -> Plan:
    """The plan of the one operation among the choices, or one that lists them all."""
    operations = [choice for choice in choices if choice.plan is not None]
    rest = _plans([c for c in choices if len(operations) != 1 or c is not operations[0]])
    main = _plan(operations[0]) if len(operations) == 1 else Plan(name, ())
    inside = (*main.inside, *([(None, rest)] if rest else []))
    return dataclasses.replace(main, inside=inside, notes=notes)


def _plans(choices: list[Choice]) -> tuple[Plan, ...]:
    """Each once: a form is traced again for its batch rule and for branches of its own."""
    return tuple({str(plan): plan for plan in map(_plan, choices)}.values())


def _plan(choice: Choice) -> Plan:
    plan = choice.plan or Plan(choice.name, tuple(choice.forms.values()))
    forms = {form.backend: form for form in plan.chosen}
    inside = {forms[backend]: _plans(inner) for backend, inner in choice.inner.items() if inner}
    return dataclasses.replace(plan, inside=tuple(inside.items()), platforms=choice.platforms)
