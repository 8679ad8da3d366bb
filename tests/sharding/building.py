"""Checks of sharded graphs made on their devices, against SciPy; `program.py` runs them."""

import gzip
import itertools
import pathlib
import tempfile

import jax
import numpy as np
import scipy
from jax.sharding import AxisType
from sharded_calls import refused

import jaxspv as jsp
from jaxspv.sharding.builders import files, rmat
from jaxspv.sharding.builders import redistribute as spread
from jaxspv.sharding.partition import partition


def is_matrix(G, want):
    """The entries of G are those of a SciPy matrix, exactly."""
    got = G.unshard().to_scipy().tocsr()
    want = want.tocsr()
    want.sort_indices()
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name))


def some_edges():
    """Edges of 90 vertices, many of them of one vertex, equal pairs and loops among them."""
    rng = np.random.default_rng(1)
    row, col = rng.integers(0, 90, (2, 1000))
    row[:300] = 5
    return row, col, rng.integers(1, 9, 1000).astype(np.float32)


def edges(mesh_of):
    """In one round and in many, by rows, columns and blocks; on explicit axes; both directions."""
    row, col, value = some_edges()
    want = scipy.sparse.coo_array((value, (row, col)), shape=(90, 90))
    for name in ("eight", "columns", "both", "one axis of two"):
        mesh, spec = mesh_of(name, AxisType.Explicit if name == "both" else AxisType.Auto)
        is_matrix(jsp.sharding.shard_edges(row, col, value, mesh=mesh, spec=spec, n=90), want)
        spread.SENT = 64
    proper = row != col
    ends = np.r_[row, col[proper]], np.r_[col, row[proper]]
    most = np.zeros((90, 90), np.float32)
    np.maximum.at(most, ends, np.r_[value, value[proper]])
    how = {"directed": False, "dup": jsp.monoids.max_, "nse": 4000}
    G = jsp.sharding.shard_edges(row, col, value, mesh=mesh, spec=spec, **how)
    assert G.symmetric and G.data.shape[-1] == 4000
    is_matrix(G, scipy.sparse.csr_array(most))
    none = jsp.sharding.shard_edges([], [], mesh=mesh, n=3)
    assert none.n == 3 and int(none.unshard().count) == 0
    faults(mesh)


def faults(mesh):
    cases = (
        (
            "`nse` must be at least",
            lambda: jsp.sharding.shard_edges([0, 1], [1, 0], mesh=mesh, nse=0),
        ),
        ("`senders` must lie", lambda: jsp.sharding.shard_edges([-1], [0], mesh=mesh)),
        (
            "`receivers` must lie in [0, 3)",
            lambda: jsp.sharding.shard_edges([0], [3], mesh=mesh, n=3),
        ),
        ("of one length", lambda: jsp.sharding.shard_edges([0], [1, 2], mesh=mesh)),
        ("`values` must have shape", lambda: jsp.sharding.shard_edges([0], [1], [1, 2], mesh=mesh)),
        ("`n` must be an integer", lambda: jsp.sharding.shard_edges([0], [1], mesh=mesh, n=-1)),
        (
            "of Threefry",
            lambda: jsp.sharding.shard_rmat(jax.random.key(0, impl="rbg"), 4, mesh=mesh),
        ),
        ("too many for", lambda: jsp.sharding.shard_rmat(jax.random.key(0), 30, 64, mesh=mesh)),
    )
    refused((ValueError, *case) for case in cases)


def drawn(mesh_of):
    """The same graph on any number of devices, that of one; no device draws more than its share."""
    key = jax.random.key(3)
    for name, how in (
        ("eight", {}),
        ("both", {"symmetric": False}),
        ("one axis of two", {"permute": False, "a": 0.4}),
    ):
        mesh, spec = mesh_of(name)
        G = jsp.sharding.shard_rmat(key, 7, 5, mesh=mesh, spec=spec, **how)
        is_matrix(G, jsp.generators.rmat(key, 7, 5, **how).to_scipy())
        assert G.symmetric == how.get("symmetric", True)
    mesh, _ = mesh_of("eight")
    certified(jsp.sharding.shard_rmat(key, 7, 5, mesh=mesh))
    mesh, _ = mesh_of("eight", AxisType.Explicit)
    with jax.set_mesh(mesh):
        is_matrix(
            jsp.sharding.shard_rmat(key, 7, 5, mesh=mesh), jsp.generators.rmat(key, 7, 5).to_scipy()
        )
    share, part = 2**17, partition(mesh, None, 64)
    given = np.zeros(2, np.uint32), np.full(8, share, np.int32)
    odds = (0.5, 0.2, 0.2)
    program = rmat._edges.lower((8, 1), rmat._auto(part), 6, share, odds, True, *given).compile()
    memory = program.memory_analysis()
    assert memory.temp_size_in_bytes < 32 * share  # all devices' would be eight shares
    assert not any(word in program.as_text() for word in ("all-gather", "all-to-all", "permute("))


def certified(G):
    """The certificate of the benchmark takes a search and nothing else."""
    from benchmarks.traversal.made_on_mesh import is_search

    levels = np.asarray(jsp.bfs(G, 3).levels)
    check = jax.jit(is_search)
    assert check(G, levels, 3) and not check(G, levels, 4)
    assert (levels > 1).any() and (levels < 0).any()
    for wrong in (np.argmax(levels == 2), np.argmax(levels < 0)):
        for level in (0, 1, 3):
            assert not check(G, np.where(np.arange(G.n) == wrong, level, levels), 3), (wrong, level)


def read(mesh_of):
    """Parts of files are what SciPy and NumPy read of the whole; broken ones are refused."""
    row, col, value = some_edges()
    mesh, _ = mesh_of("four")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        general = scipy.sparse.coo_array((value, (row, col)), shape=(90, 90)).tocsr()
        skew = scipy.sparse.coo_array(np.triu(general.toarray(), 1))
        for block, (name, matrix) in zip(
            (100, 2**24, 100, 7),
            {"a.mtx": general, "b.mtx.gz": general, "s.mtx": general + general.T}.items(),
            strict=False,
        ):
            files.BLOCK = block
            jsp.write_mtx(folder / name, matrix)
            G = jsp.sharding.shard_file(folder / name, mesh=mesh)
            is_matrix(G, matrix)
            assert G.symmetric == (name == "s.mtx")
        jsp.write_mtx(folder / "k.mtx", skew - skew.T)
        is_matrix(jsp.sharding.shard_file(folder / "k.mtx", mesh=mesh), skew - skew.T)
        text = (folder / "s.mtx").read_text().replace("symmetric", "hermitian", 1)
        (folder / "h.mtx").write_text(text)
        is_matrix(jsp.sharding.shard_file(folder / "h.mtx", mesh=mesh), general + general.T)
        lines = "".join(f"{r},{c},{v}\r\n" for r, c, v in zip(row, col, value, strict=True))
        with gzip.open(folder / "e.csv.gz", "wt", newline="") as file:
            file.write("# edges\r\nfrom,to,km\r\n\r\n" + lines)
        is_matrix(jsp.sharding.shard_file(folder / "e.csv.gz", mesh=mesh, weight=2, n=90), general)
        (folder / "cut.mtx").write_text((folder / "a.mtx").read_text()[:-9])
        (folder / "wrong.txt").write_text("0 1\n2 x\n")
        tens = np.zeros((90, 90), int)
        np.add.at(tens, (row, col), 10 * value.astype(int))
        ten = "".join(f"{r} {c} {v}\n" for r, c, v in zip(row, col, 10 * value, strict=True))
        (folder / "tens.txt").write_text(ten)
        how = {"mesh": mesh, "weight": 2, "n": 90}
        for dtype in ("int16", "uint32"):
            G = jsp.sharding.shard_file(folder / "tens.txt", dtype=dtype, **how)
            is_matrix(G, scipy.sparse.csr_array(tens.astype(dtype)))
        assert tens.max() > 127 and value.max() < 13  # each fits, sums do not
        for name, words, more in (
            ("cut.mtx", "claims", {}),
            ("wrong.txt", "must be an integer; got 'x'", {}),
            ("tens.txt", "is beyond int8", how | {"dtype": "int8"}),
        ):
            try:
                jsp.sharding.shard_file(folder / name, **{"mesh": mesh} | more)
            except ValueError as error:
                assert words in str(error) and (more or name in str(error)), str(error)
            else:
                raise AssertionError(name)
        parts_are_the_whole(folder / "a.mtx")


def parts_are_the_whole(path):
    """Every line belongs to one process, whatever the number of processes and the blocks."""
    whole, here = path.read_bytes(), (jax.process_index, jax.process_count)
    try:
        for parts, block in itertools.product((1, 2, 3), (3, 64, 2**20)):
            files.BLOCK, pieces = block, []
            for k in range(parts):
                jax.process_index, jax.process_count = lambda: k, lambda: parts
                pieces += files.local_blocks(path, 3)
            assert b"".join(lines for _, lines in sorted(pieces)) == whole[3:], (parts, block)
    finally:
        jax.process_index, jax.process_count = here
