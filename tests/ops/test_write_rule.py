"""C<M, replace> = C accum T against its definition on dicts, every combination, NaN in padding."""

import functools
import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv.ops.write_rule.write import Options, write_matrix, write_vector

SHAPE, CAPACITY = (4, 5), 12
KINDS = ("none", "value", "structure", "array")
COMBINATIONS = [
    (kind, complement, accum, replace)
    for kind, complement, accum, replace in itertools.product(
        KINDS, (False, True), (None, "minus"), (False, True)
    )
    if not (complement and kind == "none")
]


def random_entries(rng, count=8):
    cells = rng.permutation(SHAPE[0] * SHAPE[1])[: rng.integers(0, count + 1)]
    return {divmod(int(c), SHAPE[1]): float(rng.integers(0, 4)) for c in cells}


def matrix(entries, pad=np.nan, capacity=CAPACITY):
    keys = sorted(entries)
    extra = capacity - len(keys)
    return jsp.COO(
        jnp.asarray([entries[k] for k in keys] + [pad] * extra, jnp.float32),
        jnp.asarray([k[0] for k in keys] + [SHAPE[0]] * extra, jnp.int32),
        jnp.asarray([k[1] for k in keys] + [SHAPE[1]] * extra, jnp.int32),
        jnp.asarray(False),
        SHAPE,
    )


def vector(entries, pad=np.nan):
    """The matrix as a vector, row after row."""
    keys = sorted(entries)
    extra, n = CAPACITY - len(keys), SHAPE[0] * SHAPE[1]
    return jsp.SparseVector(
        jnp.asarray([entries[k] for k in keys] + [pad] * extra, jnp.float32),
        jnp.asarray([k[0] * SHAPE[1] + k[1] for k in keys] + [n] * extra, jnp.int32),
        jnp.int32(len(keys)),
        jnp.asarray(False),
        (n,),
    )


def definition(C, T, M, kind, complement, accum, replace):
    result = {}
    for place in itertools.product(range(SHAPE[0]), range(SHAPE[1])):
        allowed = kind == "none" or (place in M and (kind == "structure" or M[place] != 0))
        allowed ^= complement
        z = {k: v[place] for k, v in (("c", C), ("t", T)) if place in v}
        if not allowed:
            if "c" in z and not replace:
                result[place] = z["c"]
        elif accum and len(z) == 2:
            result[place] = z["c"] - z["t"]
        elif "t" in z or (accum and z):
            result[place] = z.get("t", z.get("c"))
    return result


def mask_of(M, kind, complement, make):
    if kind == "none":
        return None
    mask = make(M)
    if kind == "array":
        mask = mask.todense() != 0
    mask = jsp.structure(mask) if kind == "structure" else jsp.Mask(mask)
    return ~mask if complement else mask


def listed(result):
    count = int(result.count)
    if isinstance(result, jsp.SparseVector):
        places = [divmod(int(i), SHAPE[1]) for i in result.indices[:count]]
        assert (np.asarray(result.indices[count:]) == result.shape[0]).all()
    else:
        coo = result.to_coo()
        places = [*zip(coo.row[:count].tolist(), coo.col[:count].tolist(), strict=True)]
        assert (np.asarray(coo.row[count:]) == SHAPE[0]).all()
    assert places == sorted(places)
    return dict(zip(places, result.data[:count].tolist(), strict=True))


@functools.partial(jax.jit, static_argnums=(3, 4))
def program(C, T, mask, accum, replace):
    write = write_vector if isinstance(C, jsp.SparseVector) else write_matrix
    op = None if accum is None else getattr(jsp.operators, accum)
    return write(T, Options(mask, op, C, replace))


@pytest.mark.parametrize(("kind", "complement", "accum", "replace"), COMBINATIONS)
@pytest.mark.parametrize("make", [matrix, vector])
def test_every_combination(make, kind, complement, accum, replace):
    rng = np.random.default_rng(3)
    for _ in range(6):
        C, T, M = (random_entries(rng) for _ in range(3))
        want = definition(C, T, M, kind, complement, accum, replace)
        mask = mask_of(M, kind, complement, make)
        got = program(make(C), make(T), mask, accum, replace)
        assert listed(got) == want
        assert not got.overflow


@pytest.mark.parametrize("accum", [None, "minus"])
def test_gradients_ignore_padding_and_the_places_not_written(accum):
    rng = np.random.default_rng(5)
    C, T, M = (random_entries(rng) for _ in range(3))
    weights = jnp.arange(20.0).reshape(SHAPE)

    def f(c, t, pad):
        cm, tm = matrix(C, pad), matrix(T, pad)
        keep_c, keep_t = (jnp.arange(CAPACITY) < len(e) for e in (C, T))
        cm = cm.with_data(jnp.where(keep_c, c, cm.data))
        tm = tm.with_data(jnp.where(keep_t, t, tm.data))
        written = program(cm, tm, mask_of(M, "value", True, matrix), accum, False)
        return jnp.sum(written.todense() ** 2 * weights)

    c, t = jnp.linspace(1, 2, CAPACITY), jnp.linspace(2, 3, CAPACITY)
    f = jax.jit(f)
    check_grads(lambda c, t: f(c, t, np.nan), (c, t), order=1, modes=("fwd", "rev"), rtol=1e-2)
    for argnum in (0, 1):
        grads = [jax.grad(f, argnum)(c, t, pad) for pad in (0.0, np.nan)]
        np.testing.assert_array_equal(*grads)


def test_overflow_and_shapes():
    A, B = matrix({(0, 0): 1.0, (1, 1): 2.0}), matrix({(0, 0): 5.0, (2, 2): 7.0})
    written = jax.jit(lambda A, B: write_matrix(B, Options(None, jsp.monoids.plus, A, nse=2)))(A, B)
    assert written.overflow and listed(written) == {(0, 0): 6.0, (1, 1): 2.0}
    with pytest.raises(ValueError, match="`out` must have the shape"):
        write_matrix(A, Options(out=A.T))
    with pytest.raises(TypeError, match="positional"):
        write_matrix(A, Options(out=A, accum=jsp.operators.firsti))


def test_a_dense_vector_keeps_its_shape_and_fills_what_is_deleted():
    w, t = jnp.array([1.0, 2.0, 3.0]), jsp.vector_from_entries([1, 2], [10.0, 20.0], 3)
    mask = jnp.array([True, True, False])
    assert write_vector(t, Options(out=w)).tolist() == [0, 10, 20]
    assert write_vector(t, Options(out=w, accum=jnp.add)).tolist() == [1, 12, 23]
    assert write_vector(t, Options(mask, out=w), -1).tolist() == [-1, 10, 3]
    assert write_vector(t, Options(mask, jnp.add, w, True)).tolist() == [1, 12, 0]


def test_batches():
    rng = np.random.default_rng(8)
    cases = [[random_entries(rng) for _ in range(3)] for _ in range(4)]
    stack = [
        jax.tree.map(lambda *x: jnp.stack(x), *[matrix(case[k]) for case in cases])
        for k in range(3)
    ]
    got = jax.vmap(lambda C, T, M: write_matrix(T, Options(~jsp.structure(M), jnp.subtract, C)))(
        *stack
    )
    for k, (C, T, M) in enumerate(cases):
        one = jax.tree.map(lambda x: x[k], got)
        assert listed(one) == definition(C, T, M, "structure", True, "minus", False)


@pytest.mark.parametrize("dense", [False, True])
def test_integers_joined_with_floats_keep_all_bits(dense):
    """Of int32 and float32 JAX makes float32, which holds integers up to 2^24."""
    large = 2**24 + 1
    T = (
        jnp.asarray([1.0, 0.5])
        if dense
        else jsp.from_edges([0, 1], [0, 1], [1.0, 0.5], shape=(2, 2))
    )
    if dense:
        found = write_vector(T, Options(None, jsp.operators.plus, jnp.asarray([large, 4])))
    else:
        T = jsp.from_edges([0, 1], [0, 1], [1.0, 0.5], shape=(2, 2))
        out = jsp.from_edges([0, 1], [0, 1], [large, 4], shape=(2, 2))
        found = write_matrix(T, Options(None, jsp.operators.plus, out)).data
    assert found.dtype == jnp.int32 and found.tolist()[:2] == [large + 1, 4]


WITHOUT_MEMORY = """
import faulthandler, jax, jax.numpy as jnp, numpy as np, jaxspv as jsp
from jaxspv.ops.write_rule.call import settled

faulthandler.dump_traceback_later(40, exit=True)
A = jsp.from_edges(np.arange(5000), np.arange(5000), shape=(5000, 5000))
coo = A.asformat("coo")


@jax.jit
def late(row):
    return jax.lax.fori_loop(0, 20_000, lambda _, x: x + 1 - x % 2, row)


@jax.jit
def lost(row):  # together with 2^52 bytes, while its operand is not there
    return jnp.zeros((2**25, 2**25)) + row[0], row + 0, row[1] + 1


lost.lower(coo.row).compile(), lost.lower(A.indptr).compile()
for call in (
    lambda: settled(A, None, lost(late(coo.row))[2]),
    lambda: settled(dataclasses.replace(A, indptr=lost(late(A.indptr))[1]), None),
    lambda: jsp.ELL.from_coo(dataclasses.replace(coo, row=lost(late(coo.row))[1])),
):
    try:
        call()
    except jax.errors.JaxRuntimeError as error:
        print("emory" in str(error), flush=True)
"""


def test_reading_results_without_memory_raises():
    """It never ended, or ended the process: their counts were read before they were there."""
    run = [sys.executable, "-c", "import dataclasses" + WITHOUT_MEMORY]
    done = subprocess.run(run, capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == ["True"] * 3, done.stderr[-2000:]
