"""The derivatives of a product with a CSR: values, padding, vmap, winners, temporaries on a CPU."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core.platforms import Situation, inside
from jaxspv.ops.products.spmv.jvp import csr_vjp

DENSE = np.array([[0, 2, 0, 3.5], [0, 0, 0, 0], [1, 0.5, 4, 7], [0, 0, 6, 0]], np.float32)


def padded():
    """Two slots too many, with NaN in them, and their column at the extent."""
    A = jsp.from_dense(DENSE)
    return dataclasses.replace(
        A,
        data=jnp.pad(A.data, (0, 2), constant_values=jnp.nan),
        indices=jnp.pad(A.indices, (0, 2), constant_values=4),
    )


@pytest.mark.parametrize("stored_rows", [False, True])
@pytest.mark.parametrize("values,vector", [(True, True), (True, False), (False, True)])
def test_both_cotangents(values, vector, stored_rows):
    A = padded()
    w, x = jnp.array([1, 2, 3, 4], A.dtype), jnp.array([5, 6, 7, 8], A.dtype)
    by_values, by_vector = csr_vjp(
        A.indptr,
        A.indices,
        w,
        4,
        x=x if values else None,
        data=A.data if vector else None,
        rows=A.rowcol()[0] if stored_rows else None,
    )
    assert (by_values is None, by_vector is None) == (not values, not vector)
    if by_values is not None:
        want = np.outer(w, x)[np.nonzero(DENSE)]
        np.testing.assert_allclose(by_values, [*want, 0, 0])
    if by_vector is not None:
        np.testing.assert_allclose(by_vector, DENSE.T @ np.asarray(w))


def test_a_batch_of_weights():
    A = padded()
    weights = jnp.arange(8.0).reshape(2, 4)
    gradients = jax.jit(jax.vmap(lambda w: csr_vjp(A.indptr, A.indices, w, 4, data=A.data)[1]))(
        weights
    )
    np.testing.assert_allclose(gradients, np.asarray(weights) @ DENSE)


LENGTHS = {  # rows that are spread over their entries, rows that are not, both in one block
    "short": np.r_[0, 3, 0, 0, 4, 9, 8, np.arange(190) % 7],
    "long": np.r_[0, 90, 17, 40, np.full(70, 30)],
    "mixed": np.r_[np.arange(130) % 5, 99, 0, 60, np.full(66, 16)],
}


def rows_of(lengths, dtype, padding=5):
    rng = np.random.default_rng(len(lengths))
    S = sp.csr_array((len(lengths), 100), dtype=dtype)
    S.indptr = np.append(0, np.cumsum(lengths)).astype(np.int32)
    S.indices = np.concatenate([np.sort(rng.permutation(100)[:k]) for k in lengths]).astype(
        np.int32
    )
    S.data = rng.integers(-9, 9, len(S.indices)).astype(dtype)
    w, x = rng.integers(-9, 9, S.shape[0]), rng.integers(-9, 9, S.shape[1])
    A = jsp.from_scipy(S)
    A = dataclasses.replace(
        A,
        data=jnp.pad(A.data, (0, padding), constant_values=jnp.nan),
        indices=jnp.pad(A.indices, (0, padding), constant_values=100),
    )
    return S, A, w.astype(dtype), x.astype(dtype)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LENGTHS)
def test_rows_of_every_length(name, dtype, threads):
    with jax.enable_x64(dtype == "float64"):
        S, A, w, x = rows_of(LENGTHS[name], dtype)
        slopes = np.repeat(w, np.diff(S.indptr)) * x[S.indices]
        ends = A.indptr, A.indices, jnp.asarray(w), 100
        x, two = jnp.asarray(x), jnp.stack([A.data, 2 * A.data])
        try:
            jsp.config.set_num_threads(threads)
            both = jax.jit(lambda: csr_vjp(*ends, x=x, data=A.data))()
            alone = csr_vjp(*ends, x=x)[0]
            lanes = jax.vmap(lambda data: csr_vjp(*ends, x=x, data=data))(two)
        finally:
            jsp.config.set_num_threads(0)
        for by_values in (both[0], alone, lanes[0][0], lanes[0][1]):
            assert by_values.dtype == dtype
            np.testing.assert_array_equal(by_values, np.append(slopes, np.zeros(5)))
        for k, by_vector in enumerate((both[1], *lanes[1])):
            np.testing.assert_array_equal(by_vector, max(k, 1) * (S.T @ w))


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("name", ["min_plus", "max_plus", "max_times", "min_second"])
def test_the_first_entry_that_gave_the_result_has_its_slope(name, flip):
    """Small integers, so that many are equal; under vmap too."""
    S, A, w, x = rows_of(LENGTHS["mixed"], "float32")
    x[3] = np.nan
    semiring = jsp.semirings.as_semiring(name)
    product = jsp.vxm if flip else jsp.mxv
    operands = (lambda B, x: (x, B.T)) if flip else (lambda B, x: (B, x))

    def weighted(data, x):
        y = product(*operands(A.with_data(data), x), semiring)
        return jnp.vdot(w, jnp.where(jnp.isfinite(y), y, 0))

    gradient = jax.jit(jax.vmap(jax.grad(weighted, (0, 1))))
    lanes = gradient(jnp.stack([A.data, -A.data]), jnp.stack([x, -x]))
    for k, sign in enumerate((1, -1)):
        by_values, by_x = np.zeros(A.nse), np.zeros(100)
        for i, (a, b) in enumerate(itertools.pairwise(S.indptr)):
            u, v = sign * S.data[a:b], sign * x[S.indices[a:b]]
            u, v = (v, u) if flip else (u, v)
            terms = {"plus": u + v, "times": u * v, "second": v}[name[4:]]
            if len(terms) == 0 or np.isnan(terms).any():
                continue
            best = a + (np.argmin if name.startswith("min") else np.argmax)(terms)
            du, dv = {
                "plus": (1, 1), "times": (v[best - a], u[best - a]), "second": (0, 1)
            }[name[4:]]  # fmt: skip
            du, dv = (dv, du) if flip else (du, dv)
            by_values[best] += w[i] * du
            by_x[S.indices[best]] += w[i] * dv
        np.testing.assert_array_equal(lanes[0][k], by_values)
        np.testing.assert_array_equal(lanes[1][k], by_x)


def slopes_by_both(A, x):
    return jax.value_and_grad(
        lambda data, x: jnp.tanh(jsp.mxv(A.with_data(data), x)).sum(), (0, 1)
    )(A.data, x)


def test_scatters_run_natively_with_few_temporaries_on_cpu():
    """Without C++: products take rows, terms and sums in double.

    JAX 0.10.2 makes a loop of a scatter, which must be native; newer versions have no loop here.
    """
    if jax.default_backend() != "cpu":
        pytest.skip("it looks at a program for CPUs")
    rng = np.random.default_rng(0)
    A = jsp.from_dense(np.where(rng.random((300, 300)) < 0.2, 1.0, 0.0).astype(np.float32))
    x = jnp.ones(300)
    with inside(Situation(("cpu", "xla"), portable=True)):
        compiled = jax.jit(slopes_by_both).lower(A, x).compile()
    text = compiled.as_text()
    assert " scatter(" in text or " while(" in text
    assert text.count('xla_cpu_small_call="true"') == text.count(" while(")
    memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes < 6 * 4 * A.nse  # less than six arrays of the entries
