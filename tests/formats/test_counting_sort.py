"""Entries turned from one axis to the other: NumPy's order, by the loop and by the sort."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core.platforms import using
from jaxspv.formats.offsets import compressed_by_minor, search_rows


@pytest.mark.parametrize("backend", ["cpu", "xla"])
def test_turned_entries_are_in_the_order_of_numpy(backend):
    """Padding, empty and unsorted rows, an entry twice; the values of the padding are nobody's."""
    rng = np.random.default_rng(0)
    m, n, count = 17, 23, 90
    row = np.sort(rng.integers(0, m, count))
    col = rng.integers(0, n, count)
    indptr = np.searchsorted(row, np.arange(m + 1)).astype(np.int32)
    indices = np.append(col, np.full(5, n)).astype(np.int32)

    def run(indptr, indices):
        with using(backend):
            ends, major, slots = compressed_by_minor(indptr, indices, shape=(m, n))
            return search_rows(ends, slots.shape[0]), major, slots

    found = jax.jit(run)(indptr, jnp.asarray(indices))
    minor, major, slots = map(np.asarray, found)
    order = np.lexsort((row, col))
    np.testing.assert_array_equal(slots[:count], order)
    np.testing.assert_array_equal(slots[count:], np.arange(count, count + 5))  # gradients: nobody's
    np.testing.assert_array_equal(minor[:count], col[order])
    np.testing.assert_array_equal(major[:count], row[order])
    assert (minor[count:] == n).all() and (major[count:] == m).all()


def test_slopes_and_batches_go_through_a_turned_matrix():
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 0, 2], [1.0, 2.0, 3.0, 4.0], shape=(3, 3)).trim()

    def turned_values(values):
        return A.with_data(values).asformat("csc").data

    given = jnp.array([5.0, 6.0, 7.0, 8.0])
    want = turned_values(given)
    np.testing.assert_array_equal(want, [7, 5, 6, 8])
    np.testing.assert_array_equal(jax.vmap(turned_values)(given[None])[0], want)
    gradients = jax.grad(lambda v: jnp.sum(turned_values(v) * want))(given)
    np.testing.assert_array_equal(gradients, given)
    pair = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), A)
    both = jax.vmap(lambda M: M.asformat("csc").indices)(pair)
    np.testing.assert_array_equal(both, [A.asformat("csc").indices] * 2)
