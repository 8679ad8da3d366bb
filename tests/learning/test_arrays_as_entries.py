"""Entries that are arrays, data (nse, heads): kept by formats, joined by row, refused elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv.algebra import monoids

DENSE = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [4, 0, 5, 6]], bool)
ROW, COL = DENSE.nonzero()
HEADS = (2, 3)
VALUES = np.random.default_rng(0).normal(size=(ROW.size, *HEADS)).astype(np.float32)
FULL = np.zeros((*DENSE.shape, *HEADS), np.float32)
FULL[ROW, COL] = VALUES
FORMATS = ("coo", "csr", "csc")


def made(format, values=VALUES, spare=3, fill=np.nan):
    """The matrix with NaN in its padding; values in the order of rows, then columns."""
    shape = DENSE.shape
    data = np.concatenate([values, np.full((spare, *values.shape[1:]), fill, values.dtype)])
    row, col = (
        np.pad(i, (0, spare), constant_values=n) for i, n in zip((ROW, COL), shape, strict=True)
    )
    arrays = (jnp.asarray(x) for x in (data, row.astype(np.int32), col.astype(np.int32)))
    return jsp.COO(*arrays, jnp.asarray(False), shape).asformat(format)


@pytest.mark.fast
@pytest.mark.parametrize("format", FORMATS)
def test_formats_keep_them(format):
    A = made(format)
    assert A.check_invariants() is A and A.nse == ROW.size + 3 and A.entry_shape == HEADS
    for other in FORMATS:
        B = jax.jit(lambda A, other=other: A.asformat(other))(A)
        np.testing.assert_array_equal(B.todense(), FULL)
        np.testing.assert_array_equal(B.T.asformat(other).todense(), FULL.swapaxes(0, 1))
        np.testing.assert_array_equal(B.to_bcoo().todense(), FULL)
    np.testing.assert_array_equal(A[2, 3], FULL[2, 3])
    assert A.trim().nse == ROW.size and A.astype(jnp.bfloat16).dtype == jnp.bfloat16
    np.testing.assert_array_equal(A.trim().todense(), FULL)
    assert repr(A) == f"{type(A).__name__}(float32[8,2,3], shape=(3, 4))"


def test_values_per_edge_are_scattered_and_added():
    A, slots = jsp.from_edges([2, 0, 2], [1, 0, 1], shape=(3, 4), return_slots=True)
    B = A.with_edge_data(slots, jnp.arange(6.0).reshape(3, 2))
    assert B.todense()[2, 1].tolist() == [4, 6] and B.todense()[0, 0].tolist() == [2, 3]


@pytest.mark.parametrize("shape", [(), (7,), (9, 2), (2, 8)])
def test_other_lengths_are_refused(shape):
    with pytest.raises(ValueError, match=r"`data` must have shape \(8,\) or \(8, ...\)"):
        made("csr").with_data(jnp.zeros(shape))


REFUSALS = {
    "tiles": lambda A: A.asformat("tiled"),
    "bits": lambda A: A.asformat("bittiled"),
    "tiles' values": lambda A: jsp.from_dense(DENSE * 1.0, format="tiled").with_data(VALUES),
    "mxv": lambda A: jsp.mxv(A, jnp.ones(4)),
    "sum": lambda A: A + A,
    "row": lambda A: A[0],
    "mxm": lambda A: jsp.mxm(A, A.T),
    "scipy": lambda A: A.to_scipy(),
    "mask": lambda A: jsp.where(A, A),
    "bfs": lambda A: jsp.bfs(jsp.from_dense(np.eye(3)).with_data(jnp.ones((3, 2))), 0),
    "graph": lambda A: jsp.prepare(jsp.from_dense(np.eye(3)), for_="mxv").with_data(
        jnp.ones((3, 2))
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_takes_numbers_says_so(name):
    said = (
        r"must have shape \(\d,\), one value" if name == "tiles' values" else "one value an entry"
    )
    with pytest.raises(ValueError, match=said):
        REFUSALS[name](made("csr"))


def test_a_mask_by_structure_reads_no_values():
    B = jsp.from_dense(np.ones((3, 4), np.float32))
    got = jsp.where(jsp.structure(made("csr")), B)
    np.testing.assert_array_equal(got.todense(), DENSE)


ORACLES = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "var": np.var,
    "std": np.std,
    "logsumexp": lambda x, axis: np.log(np.sum(np.exp(x), axis=axis)),
}


def by_line(values, how, axis, fill=0.0):
    """NumPy, line after line."""
    lines, extent = (ROW, DENSE.shape[0]) if axis == 1 else (COL, DENSE.shape[1])
    y = np.full((extent, *values.shape[1:]), fill, np.float64)
    for i in set(lines.tolist()):
        y[i] = ORACLES[how](values[lines == i].astype(np.float64), axis=0)
    return y


@pytest.mark.parametrize("how", ORACLES)
def test_aggregate_is_the_definition(how):
    for format in FORMATS:
        for axis in (0, 1):
            for values in (VALUES, VALUES[:, 0, 0]):
                got = jsp.learning.aggregate(made(format, values), how, axis=axis, fill=-7)
                want = by_line(values, how, axis, -7)
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, bool, jnp.bfloat16, np.float16])
def test_aggregate_of_other_dtypes(dtype):
    values = np.array([3, 1, 4, 1, 5], dtype)
    for how, want in (("sum", [4, 0, 10]), ("max", [3, 0, 5])):
        if dtype is bool:
            how, want = (monoids.land, [True, False, True])
        got = jsp.learning.aggregate(made("csr", values, fill=1), how)
        assert got.dtype == dtype and got.tolist() == want


@pytest.mark.parametrize("how", ["mean", "var", "std", "logsumexp"])
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(x, np.float32) for x in (np.int32, np.uint8, bool)]
    + [(np.int64, np.float64), (jnp.bfloat16, jnp.bfloat16), (np.float16, np.float16)],
)
def test_dtypes_of_statistics_are_those_of_means(how, dtype, expected):
    with jax.enable_x64(dtype is np.int64):
        values = (np.array([100, 101, 104, 1, 255]) % (2 if dtype is bool else 256)).astype(dtype)
        A = made("csr", values, fill=1)
        got = jsp.learning.aggregate(A, how)
        assert got.dtype == jnp.mean(A.data).dtype == expected
        want = by_line(values, how, 1, 0)
        np.testing.assert_allclose(got.astype(float), want, rtol=4 * jnp.finfo(got.dtype).eps)


def test_narrow_floats_are_summed_in_wider_ones():
    A = jsp.from_dense(np.ones((1, 1000), np.float32)).astype(jnp.bfloat16)
    assert float(jsp.learning.aggregate(A)[0]) == 1000  # bfloat16 sums end at 256
    assert float(jsp.learning.softmax(A).data[0]) == float(jnp.bfloat16(0.001))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_reduce_gives_a_dense_array(axis):
    for format in FORMATS:
        got = jsp.reduce(made(format), monoids.max_, axis=axis)
        want = VALUES.max(0) if axis is None else by_line(VALUES, "max", axis, -np.inf)
        np.testing.assert_allclose(got, want, rtol=1e-6)
    with pytest.raises(ValueError, match="takes no `mask`"):
        jsp.reduce(made("csr"), axis=1, mask=jnp.ones(3, bool))


def test_softmax_is_the_definition():
    for format in FORMATS:
        for axis in (0, 1):
            got = jsp.learning.softmax(made(format), axis=axis).asformat("coo")
            lines = ROW if axis == 1 else COL
            e = np.exp(VALUES.astype(np.float64))
            sums = {i: e[lines == i].sum(0) for i in lines.tolist()}
            want = e / np.stack([sums[i] for i in lines.tolist()])
            np.testing.assert_allclose(got.data[: ROW.size], want, rtol=1e-5)


def test_softmax_at_extremes():
    values = np.array([1e30, -1e30, -np.inf, -np.inf, -np.inf], np.float32)
    assert jsp.learning.softmax(made("csr", values)).data[:5].tolist() == [1, 0, 0, 0, 0]
    gradients = jax.grad(
        lambda v: jnp.sum(jsp.learning.softmax(made("csr").with_data(v)).data[:5] ** 2)
    )
    assert not np.isnan(gradients(jnp.zeros(8).at[:5].set(values).at[5:].set(np.nan))).any()
    empty = jsp.from_edges([], [], jnp.zeros(0), shape=(2, 0))
    assert jsp.learning.softmax(empty).nse == 0 and jsp.learning.aggregate(empty).tolist() == [0, 0]


SMOOTH = {
    **{how: lambda A, how=how: jsp.learning.aggregate(A, how) for how in ORACLES},
    "times": lambda A: jsp.learning.aggregate(A, monoids.times, axis=0),
    "reduce": lambda A: jsp.reduce(A, monoids.logaddexp, axis=0),
    "softmax": lambda A: jsp.learning.softmax(A).data[: ROW.size],
    "softmax of columns": lambda A: jsp.learning.softmax(A, axis=0).data[: ROW.size],
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_in_both_modes_and_padding(name):
    A = made("csr")

    def f(values):
        padding = jnp.full((3, *HEADS), jnp.nan)
        return jnp.where(
            jnp.isfinite(y := SMOOTH[name](A.with_data(jnp.concatenate([values, padding])))), y, 0
        )

    check_grads(jax.jit(f), (jnp.asarray(VALUES),), order=1, atol=2e-2, rtol=2e-2)
    mapped = jax.vmap(f)(jnp.stack([VALUES, 2 * VALUES]))
    np.testing.assert_allclose(mapped[1], f(2 * VALUES), rtol=1e-5, atol=1e-6)


def test_bad_arguments():
    with pytest.raises(ValueError, match="`how` must be one of"):
        jsp.learning.aggregate(made("csr"), "median")
    with pytest.raises(ValueError, match="`axis` must be 0 or 1; got 2"):
        jsp.learning.softmax(made("csr"), axis=2)
    with pytest.raises(TypeError, match="takes floats; got int32"):
        jsp.learning.softmax(jsp.from_dense(np.eye(2, dtype=np.int32)))
    for format in ("ell", "sell", "tiled"):
        with pytest.raises(ValueError, match="Arrays as entries are for CSR, CSC and COO, not"):
            jsp.learning.from_edge_index(np.eye(2, dtype=int), np.ones((2, 3)), format=format)
