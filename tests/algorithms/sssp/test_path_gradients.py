"""Which path carries the derivative of a distance: at ties, at edges that add nothing, in loops."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core.compat import KERNELS_FROM, jax_version
from jaxspv.algorithms.sssp import tree
from jaxspv.algorithms.sssp.tree import sums, tight, tree_edges
from jaxspv.native import bind
from pallas_kernels.rows.lanes import Lanes
from pallas_kernels.rows.stream import Stream
from pallas_kernels.simt.device import Grid
from pallas_kernels.sssp.tight_edges import first_tight
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded


def slopes(A, source, at):
    return jax.grad(lambda w: jsp.sssp(A.with_data(w), source).distances[at])(A.data).tolist()


def test_at_ties_the_nearer_predecessor_of_smallest_id_carries_it():
    # 0 -> 3 over 1 or over 2, both of length 2; the edges in the order of their slots
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 3, 3], [1.0, 1.0, 1.0, 1.0], shape=(4, 4))
    assert slopes(A, 0, 3) == [1.0, 0.0, 1.0, 0.0]
    two = jax.jacobian(lambda w: jsp.sssp(A.with_data(w), jnp.arange(2)).distances[:, 3])(A.data)
    assert two.tolist() == [[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]]


def test_zero_weights_and_a_zero_cycle_still_give_one_path():
    A = jsp.from_edges([0, 1, 2, 2, 3], [1, 2, 1, 3, 2], [1.0, 0.0, 0.0, 0.0, 0.0], shape=(4, 4))
    got = slopes(A, 0, 3)
    assert got == [1.0, 1.0, 0.0, 1.0, 0.0]
    assert slopes(A, 1, 0) == [0.0] * 5  # unreached


def test_negative_weights():
    A = jsp.from_edges([0, 0, 1], [1, 2, 2], [3.0, 2.0, -2.0], shape=(3, 3))
    assert slopes(A, 0, 2) == [1.0, 0.0, 1.0]


def test_of_equally_many_edges_of_length_0_those_of_smallest_slot():
    # 3 is as near as 1 and 2, of which 1 has a nearer predecessor; 2 -> 3 is one such edge farther
    A = jsp.from_edges([0, 1, 1, 2], [1, 2, 3, 3], [2.0, 0.0, 0.0, 0.0], shape=(4, 4))
    assert slopes(A, 0, 3) == [1.0, 0.0, 1.0, 0.0]


def test_both_modes_and_second_order():
    """Distances are linear in the lengths along their paths."""
    A = jsp.from_edges([0, 0, 1, 2, 2], [1, 2, 3, 3, 4], [1.0, 2.0, 1.0, 0.5, 0.0], shape=(5, 5))

    def distances(w):
        return jsp.sssp(A.with_data(w), 0).distances

    slopes = jax.jacfwd(distances)(A.data)
    np.testing.assert_array_equal(slopes, jax.jacrev(distances)(A.data))
    assert slopes[4].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0]
    second = jax.hessian(lambda w: jnp.sum(distances(w) ** 2))(A.data)
    np.testing.assert_array_equal(second, 2 * slopes.T @ slopes)


def by_rule(A, d, source):
    """The slots of rules 1 and 2 of `sssp/tree`, edge by edge in float32."""
    indptr, indices, weights = (np.asarray(x) for x in (A.indptr, A.indices, A.data))
    row = np.repeat(np.arange(len(d)), np.diff(indptr))
    tight = [
        e
        for e in range(indptr[-1])
        if np.isfinite(d[indices[e]]) and d[row[e]] + weights[e] == d[indices[e]]
    ]
    slot = np.full(len(d), A.nse)
    for e in reversed(tight):
        if d[row[e]] < d[indices[e]]:
            slot[indices[e]] = e
    tight = [e for e in tight if d[row[e]] <= d[indices[e]]]
    known = {v for v in range(len(d)) if slot[v] < A.nse or v == source}
    while True:
        new = {}
        for e in tight:
            if row[e] in known and indices[e] not in known:
                new.setdefault(indices[e], e)
        if not new:
            return slot
        for v, e in new.items():
            slot[v] = e
        known |= set(new)


def random_graph(seed, least):
    """40 vertices, the last 4 of them without an edge into them; values beyond the padding."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(least, 4, 200).astype(np.float32)
    A = jsp.from_edges(
        rng.integers(0, 40, 200),
        rng.integers(0, 36, 200),
        weights,
        shape=(40, 40),
        nse=210,
        dup=jsp.monoids.min_,
    )
    padded = jnp.arange(A.nse) >= A.indptr[-1]
    return A.with_data(jnp.where(padded, jnp.nan, A.data))


@pytest.mark.parametrize("seed", range(6))
def test_rounds_with_negative_weights(seed):
    """Weights that a potential made negative, so that tight edges lead upwards and to cycles."""
    A, rng = random_graph(seed, 0), np.random.default_rng(seed)
    potential = jnp.asarray(rng.integers(-3, 4, 40).astype(np.float32))
    row, col = A.rowcol()
    shift = potential.at[col].get(mode="fill") - potential.at[row].get(mode="fill")
    A = A.with_data(A.data + shift)
    found = jsp.sssp(A, 0, method="bellman_ford")
    d = found.distances
    assert found.converged
    want = by_rule(A, np.asarray(d), 0)
    row = np.append(np.asarray(A.rowcol()[0]), -1)
    wanted = np.isfinite(d) & (np.arange(40) != 0)
    if np.any(wanted & (want == A.nse)):  # rule 3
        parents = np.asarray(jsp.sssp(A, 0, deterministic=True).parents)
        ends = list(zip(row[: A.nse].tolist(), np.asarray(A.indices).tolist(), strict=True))
        want = [ends.index((parents[v], v)) if wanted[v] else A.nse for v in range(40)]
    for backend in ("xla", None):  # None: in C++ on a CPU
        slot, tail = (np.asarray(x) for x in tight(A, d, jnp.int32(0), backend=backend))
        np.testing.assert_array_equal(slot, want)
        np.testing.assert_array_equal(tail, np.where(slot < A.nse, row[slot], np.arange(40)))


@pytest.mark.parametrize("seed, least", [(0, 1), (1, 0), (2, 0)])
def test_the_edges_are_those_of_the_rule_and_make_a_tree(seed, least):
    A = random_graph(seed, least)
    source = jnp.int32(0)
    d = jsp.sssp(A, source).distances
    want = by_rule(A, np.asarray(d), 0)
    slot, parent = (np.asarray(x) for x in tree_edges(A, d, source))
    np.testing.assert_array_equal(slot, want)
    row = np.append(np.asarray(A.rowcol()[0]), -1)
    np.testing.assert_array_equal(parent, np.where(slot < A.nse, row[slot], np.arange(40)))
    for v in range(40):
        length, at, edges = 0.0, v, 0
        while np.isfinite(d[v]) and at != 0:
            assert edges < 40
            length, at, edges = length + float(A.data[slot[at]]), parent[at], edges + 1
        assert not np.isfinite(d[v]) or length == d[v]
    rounds = tight(A, d, source, backend="xla")
    np.testing.assert_array_equal(rounds, (slot, parent))
    if not least:  # rule 2 has work
        first, _ = tree.first_tight(A, d, d, tree.STRICT)
        wanted = jnp.isfinite(d) & (jnp.arange(40) != 0)
        assert int(jnp.sum(wanted & (first == A.nse))) > 3


@pytest.mark.parametrize("degree", [6, 90])
def test_many_tight_edges_in_pieces_of_rows(degree):
    """Short rows and long ones; most edges are tight, and threads share the rows."""
    rng = np.random.default_rng(degree)
    n = 40_000 // degree
    ends = rng.integers(0, n, (2, n * degree))
    weights = rng.integers(1, 3, n * degree).astype(np.float32)
    A = jsp.from_edges(*ends, weights, shape=(n, n), dup=jsp.monoids.min_)
    d, source = jsp.sssp(A, 3).distances, jnp.int32(3)
    row = np.repeat(np.arange(n), np.diff(A.indptr))
    col, d_ = np.asarray(A.indices), np.asarray(d)
    tight_ones = np.flatnonzero(d_[row] + np.asarray(A.data) == d_[col])
    want = np.full(n, A.nse)
    np.minimum.at(want, col[tight_ones], tight_ones)  # all weights are positive
    slot, tail = (np.asarray(x) for x in tight(A, d, source))
    np.testing.assert_array_equal(slot, want)
    np.testing.assert_array_equal(
        tail, np.where(want < A.nse, np.append(row, 0)[want], np.arange(n))
    )


@pytest.mark.parametrize("size", [1, 2, 50])
def test_sums_along_paths_in_cpp_are_those_by_doubling(size):
    rng = np.random.default_rng(size)
    parent = jnp.asarray([rng.integers(0, max(v, 1)) for v in range(size)], jnp.int32)
    slot = jnp.asarray(rng.permutation(2 * size)[:size], jnp.int32)
    source = jnp.int32(0)
    for slots, count in ((None, size), (slot, size), (slot, 3 * size)):
        values = jnp.asarray(rng.random(count), jnp.float32)
        values = values if slots is not None else values.at[0].set(0)
        for down in (None, count):
            given = values if down is None else values[:size]
            if bind.refused():
                pytest.skip(bind.refused())
            a, b = (
                sums(given, parent, source, slots, down=down, backend=backend)
                for backend in ("cpu", "xla")
            )
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_several_sources_of_a_graph_with_edges_of_length_0():
    A = random_graph(1, 0)
    several = jax.jit(jax.vmap(tree_edges, (None, 0, 0)))
    sources = jnp.arange(3)
    d = jsp.sssp(A, sources).distances
    got, _ = several(A, d, sources)
    for k in range(3):
        np.testing.assert_array_equal(got[k], by_rule(A, np.asarray(d[k]), k))


@pytest.mark.parametrize("rule", [0, 1, 2])
@pytest.mark.parametrize("shape", [None, Lanes(32, 2, 1, stream=True), Stream(2)])
def test_the_kernel_finds_the_first_tight_edge(shape, rule):
    A = random_graph(3, 0)
    rng = np.random.default_rng(3)
    before, after = (rng.integers(0, 6, 40).astype(np.float32) for _ in range(2))
    for array in (before, after):
        array[rng.integers(0, 40, 6)] = np.inf
        array[rng.integers(0, 40, 6)] = np.nan
    pattern = A.indptr, A.indices, A.data
    slot, row = gridded(first_tight)(
        *pattern,
        jnp.asarray(before),
        jnp.asarray(after),
        rule=rule,
        shape=shape,
        grid=Grid(3, 64, interpret=True),
    )
    want, tail = tree.first_tight(A, before, after, rule)
    np.testing.assert_array_equal(slot, want)
    np.testing.assert_array_equal(row, tail)
    assert 0 < np.sum(np.asarray(slot) < A.nse) < 40


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="the kernels need a newer JAX")
def test_what_runs_on_a_gpu():
    """One kernel more than the search itself, in one loop."""
    A = jsp.prepare(random_graph(4, 1), for_="sssp")

    def gradient(data, source, backend=None):
        def total(data):
            d = jsp.sssp(A.with_data(data), source, backend=backend).distances
            return jnp.sum(jnp.where(jnp.isfinite(d), d, 0))

        return jax.value_and_grad(total)(data)

    def launches(**options):
        text = lower(functools.partial(gradient, **options), A.data, jnp.int32(0))
        kernels = re.findall(r'kernel_hash = "(?:[^"\\]|\\.)*"', text)
        return text.count("custom_call @mosaic_gpu"), len(set(kernels))

    assert launches() == (2, 2)
    assert launches(backend="xla") == (0, 0)


def test_an_eager_gradient_looks_at_the_weights():
    """As an eager call does: so it knows a width of buckets, and no other form is compiled."""
    A = jsp.from_edges([0, 1, 0], [1, 2, 2], [1.0, 1.0, 5.0], shape=(3, 3))

    def far(data):
        return jsp.sssp(A.with_data(data), 0).distances.sum()

    np.testing.assert_array_equal(jax.grad(far)(A.data)[:3], [2, 0, 1])
    with pytest.raises(ValueError, match="NaN"):
        jax.grad(far)(A.data.at[1].set(jnp.nan))
    traced = jax.jit(jax.grad(far))(A.data.at[1].set(jnp.nan))
    np.testing.assert_array_equal(traced[:3], [2, 0, 1])
