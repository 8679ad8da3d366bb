"""Objects built by hand that break what their format promises are refused, not computed with."""

import dataclasses
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

DENSE = np.array([[0, 1, 2, 0], [0, 0, 0, 3], [4, 0, 5, 0], [0, 0, 0, 0]], np.float32)
FORMATS = ("coo", "csr", "csc", "ell", "sell", "tiled", "bittiled")


def wide(format):
    """A matrix with capacity in excess."""
    return jsp.from_dense(DENSE, nse=8).asformat(format)


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_library_makes_keeps_its_promises(format):
    empty = jsp.from_edges([], [], shape=(0, 3))
    for A in (wide(format), wide(format).T, jsp.from_dense(DENSE, format="csr").asformat(format)):
        assert A.check_invariants() is A
        assert jsp.check(A) is A
    assert empty.asformat(format).check_invariants().nse == 0
    traced = jax.jit(lambda A: A.asformat(format))(jsp.from_dense(DENSE, nse=8))
    traced.check_invariants()
    if format in ("coo", "csr", "csc"):
        jax.vmap(lambda d: wide(format).with_data(d))(jnp.ones((3, 8))).check_invariants()
    with pytest.raises(ValueError, match="needs concrete values"):
        jax.jit(lambda A: A.check_invariants())(wide(format))


def broken(A, name, at, value):
    return dataclasses.replace(A, **{name: getattr(A, name).at[at].set(value)})


CSR_FAULTS = {
    "a column before the first": ("indices", 0, -1, r"must lie in \[0, 4\)"),
    "a column behind the last": ("indices", 0, 10**6, r"must lie in \[0, 4\)"),
    "padding that is none": ("indices", 7, -1, "must be 4 in padding"),
    "padding within range": ("indices", 6, 2, "must be 4 in padding"),
    "offsets beyond the slots": ("indptr", 4, 100, "must not go beyond 8"),
    "offsets that descend": ("indptr", 1, 4, "must not descend"),
    "negative offsets": ("indptr", 0, -3, "must begin with 0"),
    "entries out of order": ("indices", 0, 3, "not `sorted`"),
    "a place twice": ("indices", 0, 2, "comes twice"),
}


@pytest.mark.parametrize("format", ["csr", "csc"])
@pytest.mark.parametrize("fault", CSR_FAULTS)
def test_compressed_faults(fault, format):
    name, at, value, message = CSR_FAULTS[fault]
    A = broken(wide("csr"), name, at, value)
    A = A if format == "csr" else A.T
    for call in (type(A).check_invariants, jsp.check, jsp.prepare):
        with pytest.raises(ValueError, match=message):
            call(A)


def test_flags_that_tell_less_are_true():
    A = broken(wide("csr"), "indices", 0, 3)
    dataclasses.replace(A, sorted=False).check_invariants()
    A = broken(wide("csr"), "indices", 0, 2)
    dataclasses.replace(A, unique=False).check_invariants()
    with pytest.raises(ValueError, match="comes twice"):
        dataclasses.replace(A, sorted=False).check_invariants()


@pytest.mark.parametrize(("name", "at", "value"), [
    ("row", 0, -1), ("col", 0, 4), ("row", 7, 2), ("col", 7, -1), ("row", 0, 4), ("row", 4, 0),
])  # fmt: skip
def test_triplet_faults(name, at, value):
    with pytest.raises(ValueError, match="breaks its invariants"):
        jsp.check(broken(wide("coo"), name, at, value))


@pytest.mark.parametrize(("name", "at", "value"), [
    ("tile_ptr", 1, 9), ("slot_ptr", 0, -1), ("tile_col", 0, 3), ("slot_ptr", 1, 100),
])  # fmt: skip
def test_tile_faults(name, at, value):
    with pytest.raises(ValueError, match="breaks its invariants"):
        jsp.check(broken(wide("tiled"), name, at, value))


def test_local_indices_beyond_the_matrix():
    A = wide("tiled")
    with pytest.raises(ValueError, match="must lie in"):
        jsp.check(dataclasses.replace(A, packed=A.packed | jnp.uint32(0xF0)))
    B = wide("bittiled")
    words = dataclasses.replace(B.by_row, words=B.by_row.words.at[0, 20, 0].set(1))
    with pytest.raises(ValueError, match="must lie in"):
        jsp.check(dataclasses.replace(B, by_row=words))


@pytest.mark.parametrize(("change", "message"), [
    ({"indices": jnp.array([-1, 2, 5])}, r"must lie in \[0, 5\)"),
    ({"indices": jnp.array([1, 9, 5])}, r"must lie in \[0, 5\)"),
    ({"indices": jnp.array([1, 2, -1])}, "must be 5 in padding"),
    ({"indices": jnp.array([2, 1, 5])}, "not `sorted`"),
    ({"indices": jnp.array([1, 1, 5])}, "comes twice"),
    ({"count": jnp.int32(-1)}, "`count` must lie in"),
    ({"count": jnp.int32(4)}, "`count` must lie in"),
    ({"indices": jnp.array([1, 2])}, "must have length 3"),
])  # fmt: skip
def test_vector_faults(change, message):
    x = jsp.vector_from_entries([1, 2], [1.0, 2.0], 5, nse=3)
    assert jsp.check(x) is x
    with pytest.raises(ValueError, match=message):
        jsp.check(dataclasses.replace(x, **change))


def test_native_code_stays_in_bounds():
    """A column of 10^6 in a 4 x 4 matrix: an error, and the process goes on."""
    code = """
import jax, jax.numpy as jnp, jaxspv as jsp
i = jnp.array([0, 1, 2, 3, 4])
A = jsp.CSR(jnp.ones(4), jnp.array([1, 10**6, -(10**6), 0]), i, jnp.asarray(False), (4, 4))
for call in (jsp.prepare, lambda A: jsp.prepare(A, for_=("sssp", "pagerank", "mxv"))):
    try:
        call(A)
    except ValueError as error:
        assert "must lie in" in str(error)
    else:
        raise AssertionError
for call in (jsp.bfs, jsp.sssp):
    call(A, 0)
x = jsp.vector_from_entries([1, 2], [1.0, 1.0], 4)
for run in (lambda: A @ jnp.ones(4), lambda: A.T @ x, lambda: A @ x, lambda: A @ A, A.todense,
            lambda: A + A, lambda: jsp.pagerank(A), lambda: jsp.connected_components(A)):
    try:
        run()
    except ValueError:
        pass
    except jax.errors.JaxRuntimeError as error:  # from a kernel in C++
        assert "out of range" in str(error)
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "alive", done.stderr[-2000:]


ENTRIES = [0, 5, 17, 38, 39, 69]


def tiled_vector(nt, n=70):
    x = jsp.vector_from_entries(ENTRIES, np.arange(6.0), n)
    return jsp.TiledVector.from_sparse(x, nt=nt, tiles=6)


@pytest.mark.parametrize("nt", [16, 32, 64])
def test_vectors_in_tiles(nt):
    whole, word = tiled_vector(nt), max(nt // 32, 1)
    assert jsp.check(whole) is whole.check_invariants()
    last = int(whole.x_ptr[-1])
    wrong = {
        r"`x_ptr` must lie in \[-1, \d\)": broken(whole, "x_ptr", 0, 99),
        r"`x_ptr` must lie": broken(whole, "x_ptr", 0, -2),
        r"`x_ptr` must lead to each tile once": broken(whole, "x_ptr", 0, last),
        r"`bits` must be 0 in padding": broken(whole, "bits", -1, 1),
        r"`bits` must be 0 from place 70 on": broken(whole, "bits", (last + 1) * word - 1, 1 << 31),
        r"`x_tile` must have length": dataclasses.replace(whole, x_tile=whole.x_tile[:-1]),
    }
    for message, x in wrong.items():
        with pytest.raises(ValueError, match=message):
            jsp.check(x)
    for n in (0, 1, 64):
        empty = jsp.vector_from_entries([], np.zeros(0), n)
        jsp.TiledVector.from_sparse(empty, nt=nt).check_invariants()
    batch = jax.vmap(
        lambda d: jsp.TiledVector.from_sparse(
            jsp.SparseVector(d, jnp.array([3, 60]), jnp.int32(2), jnp.asarray(False), (70,)), nt=nt
        )
    )(jnp.ones((3, 2)))
    batch.check_invariants()
    few = jsp.TiledVector.from_sparse(whole.to_sparse(), nt=16, tiles=1)
    with pytest.raises(ValueError, match="overflow"):
        jsp.check(few)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 64, 70])
def test_sets_of_bits(n):
    whole = jsp.BitVector.from_bool(jnp.ones(n, bool))
    assert jsp.check(whole) is whole.check_invariants()
    if n % 64:
        with pytest.raises(ValueError, match=rf"`words` must be 0 from bit {n} on"):
            jsp.check(
                broken(whole, "words", n // 32, 0xFFFFFFFF)
                if n % 32
                else broken(whole, "words", n // 32, 1)
            )
    with pytest.raises(ValueError, match="`words` must have length"):
        jsp.check(dataclasses.replace(whole, words=jnp.zeros(5, jnp.uint32)))


def test_check_looks_at_symmetric_graphs():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((30, 30)) < 0.2, rng.random((30, 30)), 0).astype(np.float32)
    G = jsp.prepare(jsp.from_dense(dense + dense.T), for_=("mxv", "sssp"))
    assert G.symmetric and jsp.check((G, 1))[0] is G
    other = jsp.prepare(jsp.from_dense(dense), for_=("mxv",))
    assert jsp.check(other) is other  # directed
    row, col = map(np.asarray, G.out.rowcol())
    rounded = G.data * np.where(row < col, np.float32(1 + 1e-7), 1)
    for data, right in ((row + col + 1.0, True), (rounded, True), (row + 1.0, False)):
        H = G.with_data(np.asarray(data, np.float32))
        matrix = H.out.to_scipy()
        assert np.allclose((matrix - matrix.T).toarray(), 0, atol=1e-6) == right
        if right:
            jsp.check(H)
        else:
            with pytest.raises(ValueError, match="counts as symmetric holds values that differ"):
                jsp.check([H])
