"""Values that the same program computes: XLA may round them anew wherever it reads them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

DRAW = np.random.default_rng(0)
W = (DRAW.random((40, 40)) < 0.15) * DRAW.uniform(0.5, 2, (40, 40))
X = DRAW.uniform(0.5, 2, (40, 3))
FACTOR = 1.2345
OWN = jsp.semiring(jsp.monoids.min, lambda w, x: 1.3 * w + x * x)


def sparse(x):
    return jsp.vector_from_entries(np.arange(40), x, 40)


# Each gives min over j of mul(W[i, j] c, x[j] c), of one column or of all.
PRODUCTS = {
    "mxv": lambda A, x, s: jsp.mxv(A, x[:, 0], s),
    "xla": lambda A, x, s: jsp.mxv(A, x[:, 0], s, backend="xla"),
    "ell": lambda A, x, s: jsp.mxv(A.asformat("ell"), x[:, 0], s),
    "csc": lambda A, x, s: jsp.mxv(A.asformat("csc"), x[:, 0], s),
    "coo": lambda A, x, s: jsp.mxv(A.asformat("coo"), x[:, 0], s),
    "sparse": lambda A, x, s: jsp.mxv(A, sparse(x[:, 0]), s).todense(jnp.inf),
    "columns": lambda A, x, s: jsp.mxm(A, x, s),
    "lanes": lambda A, x, s: jax.vmap(lambda x: jsp.mxv(A, x, s), 1, 1)(x),
    "mxm": lambda A, x, s: jsp.mxm(A, jsp.from_dense(x, nse=120), s).todense(jnp.inf),
}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("name", PRODUCTS)
def test_the_winner_is_found(name, own):
    with jax.enable_x64():
        A, x = jsp.from_dense(W), jnp.asarray(X)

        def product(c):
            semiring = OWN if own else jsp.semirings.min_plus
            return PRODUCTS[name](A.with_data(A.data * c), x * c, semiring)

        found = jax.jit(lambda c: jax.jvp(product, (c,), (jnp.ones_like(c),)))(FACTOR)
    w, v = W[:, :, None], X[None]
    terms = 1.3 * w * FACTOR + (v * FACTOR) ** 2 if own else (w + v) * FACTOR
    terms = np.where(w > 0, terms, np.inf)
    slopes = 1.3 * w + 2 * v**2 * FACTOR if own else w + v
    won = np.take_along_axis(slopes, terms.argmin(1)[:, None], 1)[:, 0]
    want = terms.min(1), np.where(np.isfinite(terms.min(1)), won, 0)
    for mine, theirs in zip(found, want, strict=True):
        theirs = theirs if np.ndim(mine) == 2 else theirs[:, 0]
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize("backend", [None, "xla"])
def test_paths(backend):
    with jax.enable_x64():
        A = jsp.from_dense(W)

        def run(c):
            B = A.with_data(A.data * c)
            paths = jsp.sssp(B, 0, deterministic=True, backend=backend)
            start = jnp.where(jnp.arange(40) == 0, 0 * c, jnp.inf)
            end = jsp.fixpoint(B, start, "min_plus", monotone=True, backend=backend)
            return (paths.distances, end.x), paths.parents

        step = jnp.float64(1)
        values, dots, parents = jax.jit(lambda c: jax.jvp(run, (c,), (step,), has_aux=True))(FACTOR)
    far = np.where(np.arange(40) == 0, 0.0, np.inf)
    for _ in range(40):
        far = np.minimum(far, np.where(W > 0, far[:, None] + W, np.inf).min(0))
    for value, dot in zip(values, dots, strict=True):
        np.testing.assert_allclose(value, far * FACTOR, rtol=1e-9)
        np.testing.assert_allclose(dot, np.where(np.isfinite(far), far, 0), rtol=1e-9)
    assert ((np.asarray(parents) >= 0) == np.isfinite(far)).all()
