"""Gradients of SpMV and SSSP against their forward passes, and against BCOO's; memory of both."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxspv as jsp

from .. import baselines
from ..harness import Candidate, jitted, measure
from ..options import Options
from ..prepared import prepared
from ..suite import Workload

BASELINE = "BCOO, gradient by both"


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix: `over_forward` is the time of a gradient over that of its forward."""
    A = workload.matrix()
    found, forward = [], {}
    if options.cases is None or "products" in options.cases:
        found, forward = products(A, options)
    if options.cases is None or "sssp" in options.cases:
        more, forward_of_paths = paths(workload, options)
        found, forward = found + more, forward | forward_of_paths
    records = measure(found, **options.timing())
    by_name = {r["program"]: r for r in records}
    for record in records:
        record.update(n=A.shape[0], entries=A.nnz)
        if record["program"] in forward:
            base = by_name[forward[record["program"]]]
            record["over_forward"] = record["median_ms"] / base["median_ms"]
            if "bytes" in record:
                record["bytes_over_forward"] = record["bytes"] / base["bytes"]
    return records


def products(A, options):
    """SpMV forward, and with its gradients; {program: its forward}."""
    x = jnp.asarray(np.random.default_rng(0).random(A.shape[1], np.float32))
    weight = jnp.asarray(np.random.default_rng(1).random(A.shape[0], np.float32))
    want_x = A.T.astype(np.float64) @ np.asarray(weight, np.float64)
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    want_data = np.asarray(weight)[rows] * np.asarray(x)[A.indices]
    graph = prepared(A, ("mxv", "vxm"))[0]
    csr = jsp.from_scipy(A)
    found, forward = [], {}
    matrices = [("prepared", graph), ("bare CSR", csr)]
    if options.baselines:
        matrices.append(("BCOO", baselines.bcoo_spmv(A)[1]))
    for name, matrix in matrices:
        data = matrix.data
        product = _product(matrix)
        slots = None if name != "BCOO" else matrix.indices

        def loss(data, x, weight, matrix, product=product):
            return jnp.vdot(weight, product(matrix, data, x))

        moving = data, x, weight

        plain = f"{name}, forward"
        check = functools.partial(_check_total, want_x, np.asarray(x))
        found.append(_candidate(plain, loss, moving, matrix, check, options))
        for label, argnums in (("vector", 1), ("values", 0), ("both", (0, 1))):
            program = f"{name}, gradient by {label}"
            verify = functools.partial(_check_slopes, want_x, want_data, label, slots, A)
            call = jax.value_and_grad(loss, argnums)
            found.append(_candidate(program, call, moving, matrix, verify, options))
            forward[program] = plain
    return found, forward


def _product(matrix):
    if isinstance(matrix, (jsp.Graph, jsp.CSR)):
        return lambda matrix, data, x: jsp.mxv(matrix.with_data(data), x)
    kind = type(matrix)
    return lambda matrix, data, x: (
        kind(
            (data, matrix.indices),
            shape=matrix.shape,
            indices_sorted=matrix.indices_sorted,
            unique_indices=matrix.unique_indices,
        )
        @ x
    )


def _candidate(name, call, moving, matrix, verify, options):
    """One call, or `repeats` in one program, each waiting with all operands for the one before."""
    program = jitted(call)
    notes: dict[str, Any] = {"inside": bool(options.repeats)}
    if not options.repeats:
        notes |= _memory(program, *moving, matrix)
        run_it = functools.partial(_blocked, program, *moving, matrix)
        return Candidate(name, run_it, verify, 1, None, notes)

    @jax.jit  # of its own: its kernels are lowered once, not `repeats` times
    def step(moving, pattern, firsts):
        # Behind the barrier all of every result must be there before the next operands are. Each
        # of these takes part: else XLA would keep what depends on the others alone (a transposed
        # product, values put into bins, the rows of the entries) from one step to the next.
        result = lax.optimization_barrier(call(*moving, pattern))
        some = sum(leaf.ravel()[0] for leaf in jax.tree.leaves(result))
        moving, pattern, some = lax.optimization_barrier((moving, pattern, some))
        first = (jnp.where(jnp.isnan(some), some, f).astype(f.dtype) for f in firsts)
        return (tuple(v.at[0].set(f) for v, f in zip(moving, first, strict=True)), pattern), result

    @jitted
    def many(moving, matrix):
        # Their own first elements, kept apart: to read them there would cost a copy of the whole.
        firsts, result = [v[0] for v in moving], None
        for _ in range(options.repeats):
            (moving, matrix), result = step(moving, matrix, firsts)
        return result

    def run_many():
        return jax.block_until_ready(many(moving, matrix))

    return Candidate(name, run_many, verify, options.repeats, None, notes)


def _blocked(program, *args):
    return jax.block_until_ready(program(*args))


def _memory(program, *args) -> dict[str, int]:
    """What the compiled program allocates beside its arguments, and these with it."""
    analysis = program.lower(*args).compile().memory_analysis()
    if analysis is None:
        return {}
    own = int(analysis.temp_size_in_bytes + analysis.output_size_in_bytes)
    return {"temporary_bytes": own, "bytes": own + int(analysis.argument_size_in_bytes)}


def _check_total(want_x, x, total):
    np.testing.assert_allclose(total, want_x @ x, rtol=1e-4)


def _check_slopes(want_x, want_data, label, slots, A, result):
    total, gradients = result
    gradients = (
        dict(zip(("values", "vector"), gradients, strict=True))
        if label == "both"
        else {label: gradients}
    )
    if "vector" in gradients:
        np.testing.assert_allclose(gradients["vector"], want_x, rtol=1e-4, atol=1e-4)
    if "values" in gradients:
        got = np.asarray(gradients["values"])[: len(want_data)]
        if slots is None:
            np.testing.assert_allclose(got, want_data, rtol=1e-4, atol=1e-6)
        else:  # BCOO keeps its own order of entries
            np.testing.assert_allclose(got.sum(), want_data.sum(), rtol=1e-3)


def paths(workload, options):
    """SSSP forward, and with the gradient of the sum of all finite distances by the weights; single
    calls, and `repeats` in one program."""
    A = workload.weighted()
    graph = prepared(A, "sssp")[0]
    source = jnp.int32(workload.start())

    def loss(data, given):
        source, graph = given
        d = jsp.sssp(graph.with_data(data), source).distances
        return jnp.sum(jnp.where(jnp.isfinite(d), d, 0))

    programs = {
        "sssp, forward": (loss, _positive),
        "sssp, gradient by weights": (
            jax.value_and_grad(loss),
            functools.partial(_check_paths, graph),
        ),
    }
    found, forward = [], {}
    for repeats, place in ((0, ""), (options.repeats, ", inside jit"))[: 1 + bool(options.repeats)]:
        names = [name + place for name in programs]
        forward[names[1]] = names[0]
        timing = dataclasses.replace(options, repeats=repeats)
        found += [
            _candidate(name, call, (graph.data,), (source, graph), verify, timing)
            for name, (call, verify) in zip(names, programs.values(), strict=True)
        ]
    return found, forward


def _positive(total):
    assert float(total) > 0, f"the sum of the distances is {total}."


def _check_paths(graph, result):
    """The distances are linear in the weights along the tree: sum of slope * weight."""
    total, slope = result
    again = np.vdot(np.asarray(slope, np.float64), np.asarray(graph.data, np.float64))
    np.testing.assert_allclose(again, float(total), rtol=1e-4)
    assert (np.asarray(slope) >= 0).all()
