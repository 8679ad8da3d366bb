"""The types of sparsity that the benchmarks of formats draw, and what they refuse."""

import jax
import numpy as np
import pytest

from benchmarks.graphs.sparsity_types import SPARSITY_TYPES, sparsity

KEY = jax.random.key(7)

pytestmark = pytest.mark.fast


def places(A):
    """(m, n) presence of a COO, in NumPy: every graph has another size, so JAX would compile."""
    dense = np.zeros(A.shape, bool)
    dense[np.asarray(A.row), np.asarray(A.col)] = True
    return dense


def pattern(kind, n=256, density=0.05):
    return places(sparsity(KEY, kind, n, density, format="coo"))


def variance(dense):
    """Of the row lengths, over the squared mean, as the report's classifier takes it."""
    lengths = dense.sum(axis=1)
    return lengths.var() / lengths.mean() ** 2


def test_sparsity_types_look_as_described():
    assert np.ptp(pattern("uniform").sum(axis=1)) <= 1
    i, j = np.nonzero(pattern("diagonal"))
    assert abs(i - j).max() <= 7 and pattern("diagonal").diagonal().all()
    blocks = pattern("block").reshape(32, 8, 32, 8).sum(axis=(1, 3))
    assert set(np.unique(blocks)) == {0, 64}
    arrow = pattern("arrow_head")
    assert arrow.diagonal().all() and arrow[0].all() and arrow[:, 0].all()
    assert arrow[40:, 40:].sum() == 216, "only the diagonal there"
    lower = pattern("triangular")
    assert not np.triu(lower, 1).any() and (np.diff(lower.sum(axis=1)[::32]) > 0).all()
    order = ["uniform", "diagonal", "random", "triangular", "power_law"]
    spread = [variance(pattern(kind)) for kind in order]
    assert spread == sorted(spread) and min(spread[-1], variance(arrow)) > 2 > 1 > spread[-2]


SHAPES = [(64, 64), (40, 23), (23, 40), (1, 1), (1, 9), (9, 1), (0, 3), (3, 0)]


@pytest.mark.parametrize("kind", SPARSITY_TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sparsity_holds_its_density(kind, shape):
    m, n = shape
    places = m * n if kind != "triangular" else sum(min(i + 1, n) for i in range(m))
    for density in (0.0, 0.01, 0.05, 0.4, 1.0):
        if round(density * m * n) > places:
            with pytest.raises(ValueError, match="density"):
                sparsity(KEY, kind, shape, density)
            continue
        A = sparsity(KEY, kind, shape, density)
        assert A.shape == shape
        off = abs(int(A.count) - density * m * n)
        assert off <= (64 if kind == "block" else 0.5), (kind, density)
        assert bool(((A.data > 0) & (A.data <= 1)).all())


def test_whole_matrices():
    for kind in SPARSITY_TYPES:
        if kind != "triangular":
            assert int(sparsity(KEY, kind, (9, 11), 1.0).count) == 99, kind
    A = sparsity(KEY, "triangular", 8, 36 / 64)
    np.testing.assert_array_equal(A.todense() > 0, np.tri(8, dtype=bool))


def test_keys_decide_the_places():
    A, B, C = (
        places(sparsity(jax.random.key(s), "random", 20, 0.3, format="coo")) for s in (1, 1, 2)
    )
    assert (A == B).all() and (A != C).any()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: sparsity(KEY, "striped", 5), ValueError, "block.*striped"),
        (lambda: sparsity(KEY, "random", 5, -0.5), ValueError, "density.*-0.5"),
        (lambda: sparsity(KEY, "random", (5, 5, 5)), TypeError, "shape"),
        (lambda: sparsity(0, "random", 5, 0.5), ValueError, "`key` must be one key"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
