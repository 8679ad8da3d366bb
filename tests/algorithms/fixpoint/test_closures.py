"""Closures x = x0 + x A of sums that are not idempotent, and loops that do not contract."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv.algebra.semirings import log_plus, plus_times

N = 12
RNG = np.random.default_rng(3)
DENSE = np.where(RNG.random((N, N)) < 0.3, RNG.uniform(0.05, 0.25, (N, N)), 0).astype(np.float32)
A = jsp.from_dense(DENSE)
LOG = A.with_data(jnp.log(A.data))
X0 = jnp.asarray(RNG.uniform(0.1, 1, N), jnp.float32)
SOLVED = np.linalg.solve(np.eye(N) - DENSE.T.astype(float), np.asarray(X0, float))  # all walks


@pytest.mark.parametrize("prepared", [False, True])
def test_the_closure_is_the_sum_over_all_walks(prepared):
    def ready(M):
        return jsp.prepare(M, for_="fixpoint") if prepared else M

    found = jsp.fixpoint(ready(A), X0, plus_times, closure=True)
    np.testing.assert_allclose(found.x, SOLVED, rtol=1e-5)
    logs = jsp.fixpoint(ready(LOG), jnp.log(X0), log_plus, closure=True)
    np.testing.assert_allclose(logs.x, np.log(SOLVED), rtol=1e-5, atol=1e-6)
    assert found.converged and logs.converged and found.iterations < 200
    near = jsp.fixpoint(ready(A), X0, closure=True, until=jsp.until.residual(1e-3))
    assert near.converged and 1 < near.iterations < found.iterations


def test_under_jit_and_vmap_and_with_a_missing_start():
    one = jnp.full(N, -jnp.inf).at[0].set(0.0)
    starts = jnp.stack([jnp.log(X0), one])
    run = jax.jit(jax.vmap(lambda x: jsp.fixpoint(LOG, x, log_plus, closure=True)))
    found = run(starts)
    first = np.linalg.solve(np.eye(N) - DENSE.T.astype(float), np.eye(N)[0])
    np.testing.assert_allclose(found.x[0], np.log(SOLVED), rtol=1e-5, atol=1e-6)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found.x[1], np.log(first), rtol=1e-5, atol=1e-6)
    assert found.converged.all()


def test_slopes_in_the_matrix_and_the_start():
    def end(data, x0):
        return jsp.fixpoint(A.with_data(data), x0, plus_times, closure=True).x

    check_grads(end, (A.data, X0), order=1, modes=("fwd", "rev"), rtol=1e-2, atol=1e-2, eps=1e-2)


def test_an_idempotent_closure_is_the_monotone_loop():
    x0 = jnp.full(N, jnp.inf).at[0].set(0.0)
    min_plus = jsp.semirings.min_plus
    want = jsp.fixpoint(A, x0, min_plus, monotone=True).x
    for options in ({}, {"monotone": True}):
        np.testing.assert_array_equal(
            jsp.fixpoint(A, x0, min_plus, closure=True, **options).x, want
        )
    with pytest.raises(ValueError, match="leave out `update`"):
        jsp.fixpoint(A, x0, min_plus, closure=True, update=lambda x, y, *_: y)


RING = jsp.from_edges([0, 1, 2], [1, 2, 0], np.full(3, 2.0, np.float32), shape=(3, 3))
THIRDS = RING.with_data(jnp.full(3, 3))  # powers of 2 would wrap to 0
GROWING = {  # of 2 a step
    "log_plus": (RING, jnp.zeros(3), log_plus, {}),
    "log_plus by residual": (RING, jnp.zeros(3), log_plus, {"until": jsp.until.residual(1e-3)}),
    "closure": (RING, jnp.zeros(3), log_plus, {"closure": True}),
    "plus_times": (RING, jnp.ones(3), plus_times, {}),
    "plus_times closure": (RING, jnp.ones(3), plus_times, {"closure": True}),
    "integers": (THIRDS, jnp.arange(3), plus_times, {"closure": True}),
    "oscillating": (RING.with_data(-jnp.ones(3)), jnp.arange(3.0), plus_times, {}),
}


@pytest.mark.parametrize("name", GROWING)
def test_what_does_not_contract_has_not_converged(name):
    matrix, x0, semiring, options = GROWING[name]
    found = jsp.fixpoint(matrix, x0, semiring, **options)
    assert not found.converged and 100 < found.iterations <= 1 << 17
    bound = jsp.until.max_iterations(50)
    until = bound if "until" not in options else options["until"] | bound
    assert jsp.fixpoint(matrix, x0, semiring, **{**options, "until": until}).iterations == 50


def test_the_bound_grows_with_the_vertices():
    """A loop that passes one value along a path takes a step a vertex, and more than 2^17."""
    n = (1 << 17) + 9

    def first(x, y, *_):
        return jnp.where(x == 0, y, x)

    # Only the condition is looked at: so many steps of so many elements take minutes.
    path = jsp.from_edges(np.arange(n - 1), np.arange(1, n), np.ones(n - 1, np.float32))
    text = str(jax.make_jaxpr(lambda A: jsp.fixpoint(A, jnp.eye(1, n)[0], update=first))(path))
    assert str(8 * n) in text


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize("semiring", ["plus_times", "plus_first"])
def test_sums_over_paths_beyond_integers_have_not_converged(semiring, dtype):
    """A ladder of k steps has 2^k paths, less than 2^k with one start of them left out."""
    limit = int(np.iinfo(dtype).max).bit_length()
    for k, less in ((limit - 1, 0), (limit, 1), (limit, 0), (limit + 1, 0), (limit + 8, 0)):
        step = np.arange(k) * 3
        row = np.concatenate([step, step, step + 1, step + 2])
        col = np.concatenate([step + 1, step + 2, step + 3, step + 3])
        n = 3 * k + 1
        A = jsp.from_edges(row, col, np.ones(4 * k, dtype), shape=(n, n))
        x0 = jnp.zeros(n, dtype).at[0].set(1)
        if less:
            x0 = x0.at[-1].add(np.array(-1).astype(dtype) if dtype[0] == "i" else 0)
        total = 2**k - (less if dtype[0] == "i" else 0)
        fits = total <= np.iinfo(dtype).max
        for found in (
            jsp.closure(A, semiring, start=x0),
            jsp.fixpoint(A, x0, semiring, closure=True),
            jax.jit(lambda A, x0: jsp.fixpoint(A, x0, semiring, closure=True))(A, x0),
        ):
            assert bool(found.converged) == fits, (k, less)
            if fits:
                assert int(found.x[-1]) == total


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize("semiring", ["max_times", "min_times"])
def test_products_along_paths_beyond_integers_have_not_converged(semiring, dtype):
    """From 0 to 3 by 1, of w times v, or by 2, of 3 times 5."""
    best, most = (max, min)[semiring == "min_times"], int(np.iinfo(dtype).max)
    for w, v in ((most // 7, 7), (most // 7 + 1, 7), (most // 2, 4), (most, most), (2, 6), (2, 9)):
        A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], np.array([w, 3, v, 5], dtype), shape=(4, 4))
        x0 = np.full(4, most if semiring == "min_times" else np.iinfo(dtype).min, dtype)
        x0[0] = 1
        want = best(w * v, 15)
        for found in (
            jsp.closure(A, semiring, start=0),
            jsp.fixpoint(A, x0, semiring, closure=True),
            jsp.fixpoint(A, x0, semiring, monotone=True),
            jax.jit(lambda A, x0: jsp.fixpoint(A, x0, semiring, closure=True))(A, x0),
        ):
            assert int(found.x[3]) == want or not found.converged, (w, v)
            if want <= most and semiring == "max_times":
                assert found.converged and int(found.x[3]) == want, (w, v)


@pytest.mark.parametrize("prepared", [False, True])
def test_edges_that_no_path_takes_are_no_paths(prepared):
    """Infinity times 0 is a NaN, times -1 the other infinity; the least integer times 2 wraps."""
    for dtype, weights in ((jnp.float32, (0, -1)), (jnp.int32, (0, -1, 2, 3))):
        for w in weights:
            A = jsp.from_edges(
                [0, 1, 2, 2], [1, 3, 1, 3], jnp.array([2, 3, w, w], dtype), shape=(4, 4)
            )
            ready = jsp.prepare(A, for_="fixpoint") if prepared else A
            for name, add in (("max_times", jsp.monoids.max), ("min_times", jsp.monoids.min)):
                none = add.identity_of(dtype).item()
                x0 = jnp.array([1, none, none, none], dtype)
                want = np.array([1, 2, none, 6], dtype)
                np.testing.assert_array_equal(jsp.fixpoint(ready, x0, name, closure=True).x, want)
                np.testing.assert_array_equal(jsp.closure(A, name, start=0).x, want)
                pairs = jsp.semirings.counting(getattr(jsp.semirings, name))
                best, number = jsp.closure(A.with_data(pairs.lift(A.data)), pairs, start=0).x
                np.testing.assert_array_equal(best, want)
                np.testing.assert_array_equal(number, [1, 1, 0, 1])


def test_derivatives_by_edges_that_no_path_takes():
    """Of duals forwards, of the loop backwards: 0 and no NaN."""
    w = jnp.array([0.5, 0.25, 0.0, 0.0])
    A = jsp.from_edges([0, 1, 2, 2], [1, 3, 1, 3], w, shape=(4, 4))
    x0 = jnp.array([1, -jnp.inf, -jnp.inf, -jnp.inf])

    def best(w):
        return jsp.fixpoint(A.with_data(w), x0, "max_times", closure=True).x[3]

    np.testing.assert_array_equal(jax.grad(best)(w), [0.25, 0.5, 0, 0])
    duals = jsp.semirings.dual(jsp.semirings.max_times)
    value, along = jsp.closure(A.with_data(duals.lift(w, jnp.ones(4))), duals, start=0).x
    np.testing.assert_array_equal(value, [1, 0.5, -jnp.inf, 0.125])
    np.testing.assert_array_equal(along, [0, 1, 0, 0.75])
