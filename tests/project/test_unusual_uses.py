"""Uses that few tests reach: killed writers, graphs along a batch axis, hubs, many components."""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph as csgraph

import jaxspv as jsp
from jaxspv import verify
from jaxspv.io.opening import written_whole

HUB = 2**16


def star():
    """A hub with 2^16 neighbours, each an edge both ways."""
    leaves = np.arange(1, HUB + 1, dtype=np.int32)
    hub = np.zeros_like(leaves)
    row, col = np.r_[hub, leaves], np.r_[leaves, hub]
    return jsp.from_edges(row, col, np.ones(2 * HUB, np.float32), shape=(HUB + 1, HUB + 1))


def test_a_hub_of_65536():
    A = star()
    S = A.to_scipy()
    verify.bfs(S, 5, jsp.bfs(A, 5))
    verify.sssp(S, 5, jsp.sssp(A, 5))
    verify.components(S, jsp.connected_components(A))
    assert int(jsp.triangle_count(A).count) == 0
    scores = np.asarray(jsp.pagerank(A, tol=1e-7).scores, np.float64)
    np.testing.assert_allclose(scores.sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(scores[0], 0.45946, rtol=1e-3)
    np.testing.assert_array_equal(jsp.core_number(A)[0], np.ones(HUB + 1))


def test_thousands_of_components():
    rng = np.random.default_rng(0)
    start = np.arange(0, 20_000, 5)
    edges = np.concatenate([np.stack([start + k, start + k + 1], 1) for k in (0, 1)])
    edges = rng.permutation(20_000)[edges]
    row, col = np.r_[edges[:, 0], edges[:, 1]], np.r_[edges[:, 1], edges[:, 0]]
    S = scipy.sparse.csr_array((np.ones(len(row), np.float32), (row, col)), shape=(20_000,) * 2)
    A = jsp.from_scipy(S)
    count = csgraph.connected_components(S)[0]
    for found in (jsp.connected_components(A), jsp.strongly_connected_components(A)):
        assert len(np.unique(found.labels)) == count == 12_000
    forest = jsp.minimum_spanning_forest(A)
    assert int(forest.count) == 20_000 - count
    assert len(np.unique(jsp.louvain(A).labels)) == count


def test_graphs_along_a_batch_axis():
    """vmap over whole graphs of one capacity, padded apart, in a scan with checkpoint."""
    rng = np.random.default_rng(1)
    dense = [(rng.random((9, 9)) < p) * rng.integers(1, 5, (9, 9)) for p in (0.1, 0.3, 0.5)]
    graphs = [jsp.from_scipy(scipy.sparse.csr_array(D.astype(np.float32))) for D in dense]
    graphs = [jsp.pad(A, n=16, nse=64).out for A in graphs]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *graphs)
    want = np.stack([csgraph.dijkstra(D, indices=0) for D in dense])
    found = jax.vmap(lambda A: jsp.sssp(A, 0).distances)(batch)
    np.testing.assert_array_equal(np.asarray(found)[:, :9], want)

    @jax.checkpoint
    def step(total, A):
        y = jsp.mxv(A, jnp.ones(16))
        return total + jnp.sum(y), jsp.bfs(A, 0).levels

    total, levels = jax.jit(lambda batch: jax.lax.scan(step, 0.0, batch))(batch)
    assert float(total) == sum(D.sum() for D in dense)
    hops = np.stack([csgraph.dijkstra(D, indices=0, unweighted=True) for D in dense])
    np.testing.assert_array_equal(np.asarray(levels)[:, :9], np.where(np.isinf(hops), -1, hops))
    gradients = jax.grad(lambda d: jax.lax.scan(step, 0.0, batch.with_data(d))[0])(batch.data)
    ends = np.asarray([A.indptr[-1] for A in graphs])
    for slope, end in zip(np.asarray(gradients), ends, strict=True):
        assert (slope[:end] == 1).all() and (slope[end:] == 0).all()


KILLED = """
    import pathlib, sys, numpy as np, jaxspv as jsp
    from jaxspv import io
    folder, first, *sizes = sys.argv[1:]
    graphs = [
        jsp.from_edges(np.arange(n), np.arange(n)[::-1], np.arange(n) % 7 + 1.0, shape=(n, n))
        for n in map(int, sizes)
    ]
    writers = {
        ".npz": jsp.save_npz, ".mtx": io.write_mtx, ".mtx.gz": io.write_mtx,
        ".tsv": io.write_edgelist, ".csv.gz": io.write_edgelist, ".parquet": io.write_edgelist,
    }
    print("ready", flush=True)
    while True:
        for A in graphs:
            for suffix in first.split():
                writers[suffix](pathlib.Path(folder, f"graph{suffix}"), A)
"""
SIZES = 20_000, 30_000
KILLS = 50 if os.environ.get("JAXSPV_THOROUGH") == "1" else 6


def read_back(path):
    if path.suffix == ".npz":
        return jsp.load_npz(path)
    return jsp.read_mtx(path) if ".mtx" in path.name else jsp.read_edgelist(path, weight="weight")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_writer_that_is_killed_leaves_the_file_before_or_the_one_after(tmp_path):
    suffixes = [".npz", ".mtx", ".mtx.gz", ".tsv", ".csv.gz"]
    if importlib.util.find_spec("pyarrow"):
        suffixes.append(".parquet")
    random = np.random.default_rng(0)
    for kill in range(KILLS):
        start = kill % len(suffixes)
        turned = suffixes[start:] + suffixes[:start]
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path, " ".join(turned)]
            + [str(n) for n in SIZES],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        process.stdout.close()
        while not (tmp_path / f"graph{turned[0]}").exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(random.uniform(0, 1.5))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        for path in tmp_path.glob("graph.*"):
            A = read_back(path)
            n = A.shape[0]
            assert n in SIZES and int(A.count) == n, path.name
            assert float(A.data[:n].sum()) == (np.arange(n) % 7 + 1.0).sum(), path.name
    assert {f"graph{suffix}" for suffix in suffixes} <= {path.name for path in tmp_path.iterdir()}


def test_a_file_is_written_whole_or_stays(tmp_path):
    A = jsp.from_edges([0, 1], [1, 0], [1.0, 2.0], shape=(2, 2))
    path = tmp_path / "graph.tsv"
    jsp.io.write_edgelist(path, A)
    path.chmod(0o640)
    before = path.read_bytes()
    link = tmp_path / "link.tsv"
    link.symlink_to(path)
    jsp.io.write_edgelist(link, A)
    assert link.is_symlink() and path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(ZeroDivisionError), written_whole(path) as name:
        pathlib.Path(name).write_text("half")
        1 / 0  # noqa: B018 - the writer fails
    assert path.read_bytes() == before and sorted(tmp_path.iterdir()) == [path, link]
    with written_whole("/dev/null") as name:
        assert name == "/dev/null"
    with pytest.raises(FileNotFoundError, match="nowhere"):
        jsp.save_npz(tmp_path / "nowhere" / "graph.npz", A)


# ---- What strangers ran into ----


def test_sums_of_a_file_that_exceed_its_dtype(tmp_path):
    path, header = tmp_path / "a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 3\n"
    path.write_text(header + "1 1 2000000000\n1 1 2000000000\n2 2 16777217\n")
    with pytest.raises(ValueError, match="do not fit int32"):
        jsp.read_mtx(path)
    with jax.enable_x64(True):
        assert jsp.read_mtx(path).data.tolist() == [4_000_000_000, 16_777_217]


def test_means_of_wide_integers():
    with jax.enable_x64(True):
        assert jsp.from_dense(np.array([[2**40 + 1, 0]])).mean() == 2**39 + 0.5
    assert jsp.from_dense(np.array([[1, 0]], np.int8)).mean() == 0.5


def test_sums_over_paths_that_exceed_their_integers():
    for weight, fits in ((2**30, False), (5, True)):
        edges = np.full(3, weight, np.int32)
        A = jsp.from_edges([0, 1, 2], [1, 2, 3], edges, shape=(5, 5))
        x0 = jnp.array([0] + [2**31 - 1] * 4, jnp.int32)
        found = [jsp.closure(A, s, start=0) for s in ("min_plus", "max_plus")]
        found.append(jsp.fixpoint(A, x0, "min_plus", monotone=True))
        assert [bool(r.converged) for r in found] == [fits] * 3
        if fits:
            assert found[0].x.tolist() == [0, 5, 10, 15, 2**31 - 1]
            continue
        for r in found:
            with pytest.raises(ValueError, match="integers did not fit"):
                jsp.check(r)


def test_forests_of_padded_graphs():
    A = jsp.from_edges([0, 1], [1, 2], [1.0, 2.0], shape=(4, 4))
    P = jsp.pad(A, n=6, nse=8)
    found, want = jsp.unpad(jsp.minimum_spanning_forest(P), P), jsp.minimum_spanning_forest(A)
    for mine, theirs in zip(found, want, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_matrices_that_were_made_under_64_bits():
    with jax.enable_x64(True):
        A = jsp.from_dense(np.array([[0, 2.0], [3, 0]]))
    assert A.dtype == np.float64
    x = jnp.ones(2)
    assert (A @ x).tolist() == jax.jit(lambda x: A @ x)(x).tolist() == [2, 3]
    assert (A @ A).todense().tolist() == [[6, 0], [0, 6]]
    assert float(A.mean()) == 1.25
    assert jsp.mxv(A, x, "min_plus").tolist() == [3, 4]
    assert jax.grad(lambda x: (A @ x).sum())(x).tolist() == [3, 2]
    aggregate = jsp.learning.aggregate  # a warning of JAX fails these, here and below
    for found in (A.sum(axis=1), aggregate(A), jax.jit(aggregate)(A), aggregate(A + A, "max") / 2):
        assert found.dtype == np.float32 and found[1] == 3
    assert (A > 2).nnz == 1 and A.setdiag(1).sum() == 7
    assert jsp.learning.normalize(A, "row").data.tolist() == [1, 1]


def test_indices_and_arguments_out_of_the_usual():
    A = jsp.from_dense(np.array([[0, 2.0, 1], [2, 0, 3], [1, 3, 0]]))
    assert (A[...].todense() == A.todense()).all() and A[..., 1].todense().tolist() == [2, 0, 3]
    assert A.diagonal(5).shape == (0,)
    with pytest.raises(IndexError, match="None"):
        A[None]
    with pytest.raises(TypeError, match="`k` must be an integer"):
        jsp.k_truss(A, 3.5)
    with pytest.raises(ValueError, match="`k` must be 2 or more"):
        jsp.k_truss(A, 1)
    G = jsp.prepare(A)
    assert (G.T.todense() == A.todense().T).all() and (G.todense() == A.todense()).all()
    with pytest.raises(ValueError, match="at least one vertex"):
        jsp.hits(jsp.from_edges([], [], shape=(0, 0)))


def test_pagerank_of_weights_whose_sum_is_too_large():
    for large in ([3e38, 3e38, 1, 1], [1e30, 1, 1, 1]):
        A = jsp.from_edges([0, 0, 1, 2], [1, 2, 0, 0], np.float32(large), shape=(3, 3))
        for call in (jsp.pagerank, lambda A: jsp.prepare(A, for_="pagerank")):
            with pytest.raises(ValueError, match="vertex 0 have the sum"):
                call(A)
    A = jsp.from_edges([0, 0, 1, 2], [1, 2, 0, 0], np.float32([4e18, 4e18, 1, 1e18]), shape=(3, 3))
    want = jsp.pagerank(jsp.from_edges([0, 0, 1, 2], [1, 2, 0, 0], shape=(3, 3)))
    np.testing.assert_allclose(jsp.pagerank(A).scores, want.scores, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int32"])
@pytest.mark.parametrize("method", ["delta_stepping", None])
def test_sums_of_lengths_that_do_not_fit_but_do_not_matter(dtype, method):
    """An edge whose sum is clamped leads to a vertex that has a shorter path, or does not."""
    near = np.iinfo(dtype).max - 27
    data = np.array([near, near, near + 10, near + 10], dtype)
    A = jsp.from_edges([0, 1, 0, 2], [1, 2, 2, 1], data, shape=(3, 3))
    found = jsp.sssp(A, 0, method=method)
    assert found.distances.tolist() == [0, near, near + 10] and not found.overflow
    found = jsp.sssp(jsp.from_edges([0, 1], [1, 2], data[:2], shape=(3, 3)), 0, method=method)
    assert found.distances.tolist() == [0, near, near + 27] and found.overflow


@pytest.mark.parametrize("method", ["delta_stepping", "bellman_ford"])
def test_no_step_of_shortest_paths_at_all(method):
    A = jsp.from_edges([0, 1, 2], [1, 2, 3], shape=(4, 4))
    found = jsp.sssp(A, 0, until=jsp.until.max_iterations(0), method=method)
    assert found.distances.tolist() == [0, np.inf, np.inf, np.inf] and found.steps == 0
    found = jsp.sssp(A, 0, until=jsp.until.max_iterations(1), method=method)
    assert found.distances[1] == 1 and found.steps == 1


@pytest.mark.parametrize("name", ["csc", "sell"])
def test_formats_of_results(name):
    dense = np.eye(5, dtype=np.float32) + np.eye(5, k=1, dtype=np.float32)
    A = jsp.from_dense(dense).asformat(name)
    B = jsp.from_dense(dense.T)
    expected = "csc" if name == "csc" else "csr"
    results = {
        "select": jsp.select(A, jsp.operators.triu),
        "ewise_add": jsp.ewise_add(A, B),
        "ewise_mult": jsp.ewise_mult(A, B),
        "out": jsp.ewise_add(B, B, out=A),
        "kron": jsp.kron(A, B),
        "assign": jsp.assign(A, 1, 0, 0),
        "add_self_loops": jsp.learning.add_self_loops(A),
    }
    assert {call: M.format for call, M in results.items()} == dict.fromkeys(results, expected)


def test_bits_without_values_as_operands():
    """What gives values at the entries of a BitTiled gives another format."""
    rng = np.random.default_rng(0)
    dense = rng.random((70, 70)) < 0.1
    A = jsp.from_dense(dense).asformat("bittiled")
    X, Y = rng.random((2, 70, 3)).astype(np.float32)
    S = jsp.sddmm(A, X, Y)
    assert S.format == jsp.learning.normalize(A).format == "coo"
    np.testing.assert_allclose(S.todense(), np.where(dense, X @ Y.T, 0), rtol=1e-5)
    both = jsp.learning.block_diag([A, S])
    assert both.format == "csr"
    np.testing.assert_array_equal(both.todense()[:70, :70], dense)
    blocks = jsp.learning.unbatch(jsp.learning.block_diag([A, A], format="csr"), [A, A])
    np.testing.assert_array_equal(blocks[1].todense(), dense)
    assert [M.format for M in jsp.learning.unbatch(A, [A])] == ["csr"]


def random_matrix(n=8):
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, n)) < 0.4, rng.random((n, n)), 0).astype(np.float32)


@pytest.mark.parametrize("purpose", ["bfs", "sssp", "pagerank", "mxv"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_prepared_graphs_are_donated(purpose, symmetric):
    """XLA refuses a buffer that occurs twice in what is donated."""
    dense = random_matrix()
    dense = dense + dense.T if symmetric else dense
    want = csgraph.dijkstra(dense, indices=0)
    G = jsp.prepare(jsp.from_dense(dense), for_=purpose)
    assert len({id(leaf) for leaf in jax.tree.leaves(G)}) == len(jax.tree.leaves(G))
    doubled = jax.jit(lambda G, d: G.with_data(d * 2), donate_argnums=0)
    H = doubled(G, jnp.array(np.asarray(G.data)))
    np.testing.assert_allclose(jsp.sssp(H, 0).distances, 2 * want, rtol=1e-5)


def test_callbacks_in_functions_of_a_user():
    dense, x = random_matrix(), np.arange(1, 9, dtype=np.float32)
    A, seen = jsp.from_dense(dense), []

    def on_host(a, b):
        kind = jax.ShapeDtypeStruct(jnp.broadcast_shapes(a.shape, b.shape), a.dtype)
        return jax.pure_callback(np.multiply, kind, a, b, vmap_method="broadcast_all")

    def noted(old, y, *_):
        jax.debug.callback(seen.append, y.sum())
        return y * 0.1 + 1

    def in_order(a, b):
        jax.debug.callback(seen.append, a, ordered=True)
        return a * b

    S = jsp.semiring(jsp.monoids.plus, on_host)
    np.testing.assert_allclose(jsp.mxv(A, x, S), dense @ x, rtol=1e-5)
    np.testing.assert_allclose(jsp.mxm(A, A, S).todense(), dense @ dense, rtol=1e-5)
    found = jsp.fixpoint(A, x, update=noted, until=jsp.until.max_iterations(3)).x
    jax.effects_barrier()
    for _ in range(3):
        x = x @ dense * 0.1 + 1
    np.testing.assert_allclose(found, x, rtol=1e-4)
    assert len(seen) == 3
    S = jsp.semiring(jsp.monoids.plus, in_order)
    for call in (lambda: jsp.mxv(A, x, S), lambda: jax.jit(lambda M: jsp.mxm(M, M, S, nse=64))(A)):
        with pytest.raises(NotImplementedError, match="ordered=True"):
            call()
