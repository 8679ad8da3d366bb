"""Products over tuples of any functions, entry by entry in Python."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp

S = jsp.semirings


def widest(x, y):
    return {"from": jnp.minimum(x["from"], y["from"]), "to": jnp.maximum(x["to"], y["to"])}


def moved(x, y):
    return {"from": x["from"] + y["from"], "to": x["to"] - y["to"]}


def totals(x, y):
    return x[0] + y[0], x[1] | y[1], x[2] + y[2]


def weighed(x, y):
    return x[0] * y[0], x[1] & y[1], x[2] * y[2]


def affine(x, y):  # terms do not commute
    return x[0] * y[0], x[1] * y[0] + y[1]


def added(x, y):
    return x[0] + y[0], x[1] * y[1]


def whole(low, high):
    return lambda r, n: r.integers(low, high, n).astype(np.int32)


def real(r, n):
    return r.integers(0, 4, n).astype(np.float32)


OWN = {  # semiring, generators of the parts of a value, sum and product of numbers of Python
    "widest": (
        jsp.semiring(jsp.monoid(widest, {"from": np.inf, "to": -np.inf}), moved),
        {"from": real, "to": real},
        lambda x, y: {"from": min(x["from"], y["from"]), "to": max(x["to"], y["to"])},
        moved,
    ),
    "totals": (
        jsp.semiring(jsp.monoid(totals, (0.0, False, 0)), weighed),
        (real, lambda r, n: r.random(n) < 0.5, whole(-9, 9)),
        totals,
        weighed,
    ),
    "affine": (
        jsp.semiring(jsp.monoid(affine, (1, 0)), affine),
        (whole(-1, 2), whole(-3, 4)),
        affine,
        affine,
    ),
    "argmin": (S.argmin_plus(), (real, whole(0, 9)), min, lambda x, y: (x[0] + y[0], y[1])),
    "counting": (
        S.counting(S.max_plus),
        (real, whole(1, 9)),
        lambda x, y: max(x, y) if x[0] != y[0] else (x[0], x[1] + y[1]),
        added,
    ),
    "lexicographic": (
        S.lexicographic(S.min_plus, S.max_min),
        (real, real),
        lambda x, y: min(x, y) if x[0] != y[0] else (x[0], max(x[1], y[1])),
        lambda x, y: (x[0] + y[0], min(x[1], y[1])),
    ),
}
M, N = 7, 40


def drawn(name, rng, n):
    return jax.tree.map(lambda part: jnp.asarray(part(rng, n)), OWN[name][1])


def at(values, k):
    return jax.tree.map(lambda v: v[k].item(), values)


def pattern(rng):
    """Rows and columns: one row has no entries, another most; with padding."""
    dense = rng.random((M, N)) < 0.15
    dense[1], dense[4] = False, rng.random(N) < 0.9
    row, col = np.nonzero(dense)
    spare = (jnp.asarray(np.append(v, [e] * 5), jnp.int32) for v, e in ((row, M), (col, N)))
    A = jsp.COO(jnp.zeros(len(row) + 5), *spare, jnp.asarray(False), (M, N))
    return A, list(zip(row.tolist(), col.tolist(), strict=True))


def backwards(T):
    """A CSR whose rows are listed from the last entry to the first."""
    ends, slots = np.asarray(T.places.indptr), np.arange(T.nse)
    for first, last in itertools.pairwise(ends):
        slots[first:last] = slots[first:last][::-1]
    indices = T.places.indices[slots]
    places = dataclasses.replace(T.places, data=jnp.zeros(T.nse), indices=indices, sorted=False)
    return places.with_data(jax.tree.map(lambda v: v[slots], T.data))


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "unsorted"])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("name", OWN)
def test_entry_by_entry(name, flip, format):
    """Dense and sparse x, jitted, masked and mapped; floats are small integers."""
    semiring, _, add, mul = OWN[name]
    rng = np.random.default_rng(3)
    A, places = pattern(rng)
    stored, m, n = drawn(name, rng, A.nse), *((N, M) if flip else (M, N))
    T, x = A.with_data(stored), drawn(name, rng, n)
    T = backwards(T.asformat("csr")) if format == "unsorted" else T.asformat(format)

    def expected(x, there):
        found = [None] * m
        for (i, j), a in sorted((p, at(stored, k)) for k, p in enumerate(places)):
            out, inner = (j, i) if flip else (i, j)
            if inner in there:
                term = mul(at(x, inner), a) if flip else mul(a, at(x, inner))
                found[out] = term if found[out] is None else add(found[out], term)
        return found

    def call(x, **options):
        return jsp.vxm(x, T, semiring, **options) if flip else jsp.mxv(T, x, semiring, **options)

    want, zero = expected(x, range(n)), semiring.add.identity.value
    zero = jax.tree.map(lambda z, v: np.clip(z, -(2**31), 2**31 - 1).item()
                        if v.dtype == np.int32 else z, zero, x)  # fmt: skip
    want = [zero if w is None else w for w in want]
    for run in (call, jax.jit(call)):
        y = run(x)
        assert [at(y, i) for i in range(m)] == want
    mask = jnp.arange(m) % 2 == 0
    y = call(x, mask=mask)
    assert [at(y, i) for i in range(m)] == [zero if i % 2 else w for i, w in enumerate(want)]
    some = np.flatnonzero(rng.random(n) < 0.5)
    part = jsp.vector_from_entries(some, np.ones(len(some)), n)
    y = call(part.with_data(jax.tree.map(lambda v: v[some], x)))
    want = expected(x, some)
    keys = [k for k in range(m) if want[k] is not None]
    assert int(y.count) == len(keys)
    assert [at(y.todense(), k) for k in keys] == [want[k] for k in keys]
    lanes = jax.vmap(call)(jax.tree.map(lambda v: jnp.stack([v, v[::-1]]), x))
    for lane, v in enumerate((x, jax.tree.map(lambda v: v[::-1], x))):
        jax.tree.map(lambda a, b, k=lane: np.testing.assert_array_equal(a[k], b), lanes, call(v))


@pytest.mark.parametrize("name", ["widest", "argmin", "lexicographic"])
def test_derivatives_of_both_operands(name):
    """With finite differences: all sums differ."""
    semiring, rng = OWN[name][0], np.random.default_rng(5)
    A, _ = pattern(rng)
    with jax.enable_x64(True):
        stored, x = drawn(name, rng, A.nse), drawn(name, rng, N)
        parts = [np.issubdtype(v.dtype, np.floating) for v in jax.tree.leaves(x)]

        def f(a, v):
            def filled(values, like):
                leaves = zip(values, parts, jax.tree.leaves(like), strict=True)
                tree = jax.tree.structure(like)
                return jax.tree.unflatten(tree, [w if real else o for w, real, o in leaves])

            y = jsp.mxv(A.with_data(filled(a, stored)), filled(v, x), semiring)
            return [jnp.where(jnp.isfinite(w), w, 0) for w, real in
                    zip(jax.tree.leaves(y), parts, strict=True) if real]  # fmt: skip

        a, v = ([jnp.asarray(rng.normal(size=size)) for _ in parts] for size in (A.nse, N))
        check_grads(jax.jit(f), (a, v), 1, ["fwd", "rev"], eps=1e-6, rtol=1e-4, atol=1e-4)


def test_long_rows_of_floats():
    """10^5 terms of a row are joined more exactly than in float32."""
    n = 100_000
    A = jsp.from_edges(np.zeros(n, int), np.arange(n), shape=(1, n))
    data = np.full(n, np.float32(0.1)), np.ones(n, bool), np.ones(n, np.int32)
    y = jsp.mxv(A.with_data(data), data, OWN["totals"][0])
    np.testing.assert_allclose(y[0], n * float(np.float32(0.1)) ** 2, 1e-6)
    assert y[2][0] == n


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="GPUs have a kernel")
def test_which_form_serves():
    rng = np.random.default_rng(0)
    A, _ = pattern(rng)
    for name, form in (("widest", "cpu/rows"), ("counting", "xla/segments")):
        T, x = A.with_data(drawn(name, rng, A.nse)), drawn(name, rng, N)
        assert form in str(jsp.explain(jsp.mxv, T, x, OWN[name][0]))
    lists = A.with_data(jnp.ones((A.nse, 3))), jnp.ones((N, 3))
    assert "xla/segments" in str(jsp.explain(jsp.mxv, *lists, S.polynomials(2)))


def test_costs_that_are_nan():
    """They spread, as over `min_plus`."""
    A, x = jsp.from_dense([[1.0, 2.0], [0.0, 3.0], [0.0, 0.0]]), jnp.array([np.nan, 1.0])
    ids = jnp.array([7, 5], jnp.int32)
    for product in (jsp.mxv, lambda A, x, s: jsp.vxm(x, A.T, s)):
        T = A.with_data((A.data, jnp.full(A.nse, 2**31 - 1, jnp.int32)))
        cost, who = product(T, (x, ids), S.argmin_plus())
        np.testing.assert_array_equal(cost, [np.nan, 4, np.inf])
        assert who[1:].tolist() == [5, 2**31 - 1]
