"""Sparse products A A in float32, against SciPy and cuSPARSE; triangles with and without a mask."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv.algorithms.triangles import upward_edges

from .. import baselines
from ..harness import Candidate, blocking, chained, jitted, measure, preparation
from ..options import Options
from ..suite import Workload

BASELINE = "SciPy"
TOO_MANY = 1 << 31  # products from which on we are measured alone


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix."""
    A = workload.matrix()
    products = int(np.diff(A.indptr)[A.indices].astype(np.int64).sum())
    if products >= TOO_MANY:
        return _alone(A, products, options)
    want = sp.csr_array(A @ A)
    want.sort_indices()
    check = _check(A, want)
    ones = sp.csr_array((np.ones(A.nnz, np.float32), A.indices, A.indptr), shape=A.shape)
    stored = (ones @ ones).nnz  # SciPy leaves out what sums to zero
    found = _ours(A, stored, products, check, options)
    if options.baselines:
        found.append(Candidate(BASELINE, lambda: A @ A, check))
        if baselines.has_cupy() and (product := baselines.cupy_spgemm(A)) is not None:
            found.append(Candidate("cuSPARSE", product, check))
    found += _triangles(workload, options)
    records = measure(found, **options.timing())
    for record in records:
        record.update(n=A.shape[0], entries=A.nnz, products=products, result=stored)
        record["gproducts"] = products / record["median_ms"] * 1e-6
    return records


def _alone(A, products, options):
    """Where SciPy takes minutes, and cuSPARSE, which counts products in 32 bits, fails or returns
    nothing right: ours, checked by the products with a vector."""
    x = np.random.default_rng(0).integers(0, 4, A.shape[0]).astype(np.float64)
    wide = abs(A).astype(np.float64)
    want, scale = A.astype(np.float64) @ (A @ x), wide @ (wide @ x)

    def check(C):
        jsp.check(C)
        off = np.abs(np.asarray(jsp.mxv(C, x.astype(np.float32))) - want) - 2e-5 * scale
        assert off.max() <= 0, f"a row is off by {off.max()} beyond rounding."

    stored = int(jsp.mxm(*[jsp.from_scipy(A)] * 2).count)
    records = measure(_ours(A, stored, products, check, options), **options.timing())
    for record in records:
        record.update(n=A.shape[0], entries=A.nnz, products=products, result=stored)
    return records


def _ours(A, nse, products, check, options):
    matrix, convert_s = preparation(lambda: jsp.from_scipy(A))
    platform = "cuda" if jax.default_backend() == "gpu" else "cpu"
    method = jsp.explain("mxm", matrix, matrix).on(platform).name
    notes = {"method": method, "convert_s": convert_s, "inside": False}
    found = [Candidate("jaxspv", blocking(jsp.mxm, matrix, matrix), check, notes=notes)]
    # The size of the result is known: what a program of the user's own pays.
    chunk = -(-products // 1024) * 1024

    def product(A):
        return jsp.mxm(A, A, nse=nse, chunk=chunk, method=method)

    program = jitted(product)
    found.append(Candidate("jaxspv, nse known", blocking(program, matrix), check, notes=notes))
    if options.repeats:
        found.append(_inside(product, matrix, check, options.repeats, {**notes, "inside": True}))
    return found


def _inside(product, A, check, repeats, notes, name="jaxspv") -> Candidate:
    """`C = product(A)` some times in one program, each on arrays that depend on the C before."""

    def step(carry, A):
        shift, _ = carry
        moved = dataclasses.replace(
            A, data=A.data + shift.astype(A.dtype), indptr=A.indptr + shift.astype(A.indptr.dtype)
        )
        C = product(moved)
        # Counts are not negative, which XLA does not know: the arrays stay what they are.
        return jnp.minimum(C.indptr[-1], 0), C

    shapes = jax.eval_shape(product, A)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    many = chained(step, repeats, unroll=False)

    def call():
        return jax.block_until_ready(many((jnp.int32(0), empty), A))[1]

    return Candidate(f"{name}, inside jit", call, check, repeats, notes=notes)


def _triangles(workload: Workload, options: Options) -> list[Candidate]:
    """Triangles of the symmetric pattern: as they are counted, and what the mask saves."""
    A = workload.symmetrised().matrix()
    matrix = jsp.prepare(jsp.from_scipy(A), for_=(), symmetric=True)
    L = upward_edges(matrix.out)
    mask, pair = jsp.structure(L), jsp.semirings.plus_pair
    # A product by rows is faster on a CPU, dot products on a GPU.
    gpu = jax.default_backend() == "gpu"
    R, form = (L.T, "L L^T") if gpu else (L, "L L")

    @functools.cache
    def walks():
        # Closed ones of length 3, six to a triangle: more than a float32 counts.
        return int((A @ A).multiply(A).sum(dtype=np.float64))

    def check(result):
        assert 6 * int(result.count) == walks()

    def check_masked(C):
        assert 6 * int(np.asarray(C.data)[: int(C.count)].sum(dtype=np.float64)) == walks()

    def check_unmasked(C):
        assert 6 * int(C.to_scipy().multiply(L.to_scipy()).sum(dtype=np.float64)) == walks()

    capacity = int(jsp.mxm(L, R, pair).count)

    def masked(L, R):
        return jsp.mxm(L, R, pair, mask=jsp.structure(L), nse=L.nse)

    def unmasked(L, R):
        return jsp.mxm(L, R, pair, nse=capacity)

    inside, whole = jitted(masked), jitted(unmasked)
    found = [
        Candidate("triangle_count", blocking(jsp.triangle_count, matrix), check),
        Candidate(f"C<L> = {form}, nse known", blocking(inside, L, R), check_masked),
        Candidate(f"C = {form}, nse known", blocking(whole, L, R), check_unmasked),
        Candidate(f"C<L> = {form}", blocking(jsp.mxm, L, R, pair, mask=mask), check_masked),
        Candidate(f"C = {form}", blocking(jsp.mxm, L, R, pair), check_unmasked),
    ]
    if options.repeats:
        for name, multiply, verify in (
            (f"C<L> = {form}", masked, check_masked),
            (f"C = {form}", unmasked, check_unmasked),
        ):

            def product(L, multiply=multiply):
                return multiply(L, L.T if gpu else L)

            notes = {"inside": True}
            found.append(_inside(product, L, verify, options.repeats, notes, name))
    return found


def _check(A: sp.csr_array, want: sp.csr_array):
    """The places where SciPy or we store anything, and |C - A A| <= 2e-5 |A| |A| there."""
    scale = abs(A) @ abs(A)

    def check(C):
        got = C if sp.issparse(C) else C.to_scipy()
        wrong = abs(got - want) - 2e-5 * scale
        assert wrong.max() <= 0, f"an entry is off by {wrong.max()} beyond rounding."

    return check
