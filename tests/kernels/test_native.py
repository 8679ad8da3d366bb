"""The kernels on a GPU: primitives as interpreted, an expired barrier, BFS among other work, many
launches in a program.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.bfs.api import BFSConfig, bfs
from pallas_kernels.layouts.adjacency import Adjacency, prepare_bfs
from pallas_kernels.simt.launch import launch
from tests.kernels.bfs.test_bfs_kernel import NATIVE, check, oracle, random_graph

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", NATIVE)
def test_every_source(name):
    graph = NATIVE[name]
    n = len(graph[0]) - 1
    forms = {}, prepare_bfs(*graph)
    for prepared in forms if name != "any degree" else forms[:1]:
        f = jax.jit(functools.partial(bfs, prepared=jax.tree.map(jnp.asarray, prepared)))
        for source in range(-1, n + 1, max(1, n // 100)):
            check(*graph, source, *f(Adjacency(*map(jnp.asarray, graph)), jnp.int32(source)))


@pytest.mark.parametrize("more", [{}, {"queue": 64}, {"local_most": 900}])
def test_queues_of_many_ctas(more):
    """Frontiers of up to 4,096 in the queues of 8 CTAs; they overflow, grow uneven, grow wide."""
    graph = random_graph(20_000, 30_000, 5)
    more = {"local_most": 1 << 14} | more
    config = BFSConfig(ctas=8, threads=128, solo_in=2, solo_out=3, **more)
    prepared = jax.tree.map(jnp.asarray, prepare_bfs(*graph))
    assert "adjacency" in prepared
    f = jax.jit(functools.partial(bfs, prepared=prepared, config=config))
    for source in range(0, 20_000, 2_000):
        check(*graph, source, *f(Adjacency(*map(jnp.asarray, graph)), jnp.int32(source)))


def test_expired_barrier_ends_with_its_status():
    def kernel(k, m):
        (ok,) = k.grid_barrier(m.control, ctas=k.ctas + 1, limit=1000)
        k.store(m.out, k.cta * k.threads + k.thread, ok)

    found = jax.jit(
        lambda: launch(kernel, {}, {"out": 8 * 128}, ctas=8, threads=128, name="expire")
    )()
    assert (np.asarray(found["out"]) == 0).all() and found["control"][32] == 1


def test_native_equals_interpreted():
    x = jnp.asarray(np.random.default_rng(0).integers(-99, 99, 1000).astype(np.int32))

    def kernel(k, m):
        x, control = m.x, m.control
        i = k.cta * k.threads + k.thread
        v = k.load(x, i, mask=i < 1000, other=7)
        upto, total = k.warp_scan(v)
        a, b, c, d = k.load_vec(x, (i & 127) * 4, 4)
        ok, _ = k.grid_barrier(control, [(control, 40)])
        (s,) = k.for_(0, k.thread & 7, 1, lambda j, s: s + j * a - k.shr(b, 3), 0)
        f = k.cast(c, "f32") * 0.375
        k.store(
            m.out,
            i,
            upto
            + total * ok
            + k.popc(d)
            + s
            + k.bits(k.maximum(f, 1.5), "i32")
            + k.ctz(k.bit(v))
            + v % 5,
        )

    native, host = (
        jax.jit(
            functools.partial(
                launch, kernel, outputs={"out": 1024}, ctas=8, threads=128, name="same", interpret=i
            )
        )({"x": x})
        for i in (False, True)
    )
    np.testing.assert_array_equal(native["out"], host["out"])


def test_two_searches_and_other_work_in_one_program():
    graph = random_graph(5000, 20000, 4)
    arrays = Adjacency(*map(jnp.asarray, graph))

    @jax.jit
    def both(m):
        a = bfs(arrays, 0)
        b = bfs(arrays, 17)
        return a, b, (m @ m).sum(), bfs(arrays, a[1][17])[0]

    a, b, total, c = both(jnp.ones((1024, 1024)))
    check(*graph, 0, *a)
    check(*graph, 17, *b)
    np.testing.assert_array_equal(c, oracle(*graph, int(a[1][17])))
    assert total == 1024.0**3


def test_hundred_searches_in_a_scan():
    graph = random_graph(3000, 9000, 5)
    arrays = Adjacency(*map(jnp.asarray, graph))
    sources = jnp.arange(100, dtype=jnp.int32) * 7

    def one(carry, s):
        levels, *_ = bfs(arrays, s + 0 * carry)
        return levels[0], levels

    _, levels = jax.jit(lambda s: jax.lax.scan(one, jnp.int32(0), s))(sources)
    for s, row in zip(sources.tolist(), np.asarray(levels), strict=True):
        np.testing.assert_array_equal(row, oracle(*graph, s))
