"""What is called on one device and on meshes, and how the results are compared."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp


def same(got, want, **tolerance):
    np.testing.assert_allclose(got, want, **(tolerance or {"rtol": 0}))


def exact(got, want):
    jax.tree.map(np.testing.assert_array_equal, got, want)


def refused(cases):
    """Each (error, words, call) raises that error with these words."""
    for error, words, call in cases:
        try:
            call()
        except error as e:
            assert words in str(e), (words, str(e))
        else:
            raise AssertionError(words)


def products(A, x, X):
    return {
        "mxv": jsp.mxv(A, x),
        "min_plus": jsp.vxm(x, A, jsp.semirings.min_plus),
        "max_min": jsp.mxv(A, x, "max_min"),
        "logical": jsp.mxv(A, x > 0.5, jsp.semirings.or_and),
        "mxm": A @ X,
        "left": X.T @ A,
        "all": jsp.reduce(A),
        "most": jsp.reduce(A, jsp.monoids.max_, axis=0).todense(),
        "rows": jsp.reduce(A, axis=1).todense(),
    }


def written(A, x, X):
    """Masks, accumulators and outputs; operators, by value and by place."""
    some, few = x > 0.4, jsp.vector_from_entries([3, 40, 70], [True, False, True], A.shape[0])
    held, plus = jnp.arange(A.shape[0], dtype=jnp.float32), jsp.operators.plus
    return {
        "under a mask": jsp.mxv(A, x, mask=some),
        "outside of places": jsp.vxm(x, A, "min_plus", mask=~jsp.structure(few)),
        "into": jsp.vxm(x, A, mask=few, accum=plus, out=held),
        "replacing": jsp.mxv(A, x, "max_plus", mask=some, out=held, replace=True),
        "rows": jsp.mxm(A, X, mask=some),
        "places": jsp.mxm(X.T, A, mask=~jsp.structure(few), out=X.T + 1),
        "rows under a mask": jsp.reduce(A, axis=1, mask=some).todense(),
        "columns into": jsp.reduce(A, "max", axis=0, accum=plus, out=held),
        "applied": jsp.mxv(jsp.apply(A, jnp.sqrt), x),
        "bound": jsp.mxv(jsp.apply(A, plus, left=2.5), x),
        "by place": jsp.mxv(jsp.apply(A, jsp.operators.colindex, thunk=2), jnp.arange(A.shape[0])),
        "below": jsp.mxv(jsp.apply(A, jsp.operators.tril, thunk=-3), some),
    }


def slopes(A, x):
    def of(f):
        return A.with_data(jax.grad(lambda d: f(A.with_data(d)))(A.data))

    return {
        "plus": of(lambda B: jnp.sum(jnp.square(B @ x))),
        "min": of(lambda B: jnp.sum(jnp.sin(jsp.vxm(x, B, jsp.semirings.max_plus).clip(-9, 9)))),
        "paths": of(lambda B: jnp.vdot(x, jnp.nan_to_num(jsp.sssp(B, 3).distances, posinf=0))),
        "pagerank": of(lambda B: jnp.vdot(x, jsp.pagerank(B, tol=1e-7).scores)),
    }


def searches(A):
    stop = jsp.until.reached(40) | jsp.until.max_iterations(3)
    return {
        "bfs": jsp.bfs(A, 3, deterministic=True),
        "bfs of several": jsp.bfs(A, jnp.array([70, 75, 34]), deterministic=True),
        "bfs until": jsp.bfs(A, 34, until=stop, deterministic=True),
    }


def some(A, x, _=None):
    """Of each kind one."""
    return {
        "mxv": jsp.mxv(A, x),
        "min_plus": jsp.vxm(x, A, jsp.semirings.min_plus),
        "bfs of several": jsp.bfs(A, jnp.array([70, 75, 34]), deterministic=True),
        "sssp": jsp.sssp(A, 3, deterministic=True),
        "components": jsp.connected_components(A),
        "pagerank": jsp.pagerank(A),
    }


def paths(A):
    integers = A.astype(jnp.int32)
    return {
        "sssp of several": jsp.sssp(integers, jnp.array([34, 75]), deterministic=True),
        "sssp until": jsp.sssp(A, 34, until=jsp.until.reached(40), deterministic=True),
    }


def everything(A, x, X):
    return {
        **some(A, x),
        **products(A, x, X),
        **written(A, x, X),
        **searches(A),
        **paths(A),
        "personal pagerank": jsp.pagerank(A, 0.5, personalization=x, max_iterations=4),
    }


def from_several(A):
    """One source; more than a word of them."""
    sources = jnp.arange(34)
    return {
        "bfs": jsp.bfs(A, 3, deterministic=True),
        "bfs of several": jsp.bfs(A, sources, parents=False)[:1],
        "sssp": jsp.sssp(A, 3, deterministic=True),
    }


def compare(got, want):
    """All that `got` has."""
    for name, value in got.items():
        expected = want[name]
        if "pagerank" in name:
            same(value.scores, expected.scores, rtol=1e-4)
            assert abs(int(value.iterations) - int(expected.iterations)) <= 1
            assert bool(value.converged) == bool(expected.converged)
        elif "sssp" in name:  # all but the number of steps
            exact((value[:2], value[3:]), (expected[:2], expected[3:]))
        elif isinstance(value, tuple):
            exact(value, expected)
        else:
            same(value, expected, rtol=1e-6)
