"""What the benchmarks of traversals share: the prepared graph, candidates, edges, rates."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

from .harness import Candidate, blocking, chained, nbytes, preparation
from .options import Options

Verify = Callable[[Any], None]


def prepared(A: sp.csr_array, purpose: str | tuple[str, ...]) -> tuple[Any, dict[str, float]]:
    """The Graph of A, with `convert_s`, `prepare_s` and its bytes over those of the CSR."""
    matrix, convert_s = preparation(lambda: jsp.from_scipy(A))
    graph, prepare_s = preparation(lambda: jsp.prepare(matrix, for_=purpose))
    memory = nbytes(graph) / max(1, nbytes(matrix))
    return graph, {"convert_s": convert_s, "prepare_s": prepare_s, "bytes_over_csr": memory}


def candidates(
    algorithm: Callable[..., Any],
    graph: Any,
    source: int,
    verify: Verify,
    costs: dict[str, float],
    options: Options,
) -> list[Candidate]:
    """jaxspv with and without parents, on each backend there is, from Python and inside a jit."""
    found = []
    for place, impl in enumerate(
        runs_here(jsp.explain(algorithm.__name__, graph), options.backend)
    ):
        # The first is what runs unasked.
        label = "jaxspv" if place == 0 else f"jaxspv {impl.backend}"
        asked = {} if place == 0 and options.backend is None else {"backend": impl.backend}
        for parents in (True, False):
            run = functools.partial(algorithm, parents=parents, **asked)
            name = label if parents else f"{label}, no parents"
            notes = {**costs, "method": method_name(impl), "parents": parents}
            prepare_s = notes.pop("prepare_s")
            call = blocking(run, graph, source)
            found.append(Candidate(name, call, verify, 1, prepare_s, {**notes, "inside": False}))
            if options.repeats:
                call = inside(run, graph, source, options.repeats, unroll=impl.backend == "pallas")
                found.append(
                    Candidate(
                        f"{name}, inside jit",
                        call,
                        verify,
                        options.repeats,
                        prepare_s,
                        {**notes, "inside": True},
                    )
                )
    return found


def runs_here(plan: Any, backend: str | None = None) -> list[Any]:
    """The implementations of a plan (of one backend) that the device at hand can run, the preferred
    one first."""
    here = {"gpu": ("pallas", "xla")}.get(jax.default_backend(), ("cpu", "xla"))
    runs = [impl for impl in plan.chosen if impl.backend in here]
    return [impl for impl in runs if backend in (None, impl.backend)]


def method_name(impl: Any) -> str:
    """Backend and method of an implementation."""
    return f"{impl.backend}/{impl.name}"


def inside(
    run: Callable[..., Any], graph: Any, source: int, repeats: int, *, unroll: bool
) -> Callable[[], Any]:
    """`repeats` traversals in one program; returns the result of the last.

    The source of the next is read from the result: the parent of the source, which is itself, or
    the source plus its level or distance, which is 0. XLA cannot know either.
    """

    def step(carry, graph):
        here, _ = carry
        result = run(graph, here)
        if result.parents is not None:
            return result.parents[here], result
        return here + result[0][here].astype(jnp.int32), result

    start = jnp.int32(source)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(run, graph, start))
    program = chained(step, repeats, unroll=unroll)
    return lambda: jax.block_until_ready(program((start, empty), graph))[1]


def component_edges(A: sp.csr_array, reached: np.ndarray, symmetric: bool) -> int:
    """Undirected edges of the reached component, each once; of a directed graph, its arcs."""
    stored = int(np.diff(A.indptr)[reached].sum())
    return stored // 2 if symmetric else stored


def finish(records: list[dict[str, Any]], **fields: Any) -> list[dict[str, Any]]:
    """Adds what all records of one graph share, and GTEPS = `edges` / time."""
    for record in records:
        record.update(fields)
        record["gteps"] = fields["edges"] / record["median_ms"] * 1e-6
    return records
