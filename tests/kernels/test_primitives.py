"""The primitives, interpreted: arithmetic, memory, atomics, warp operations, the grid barrier and
its expiry.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.simt.launch import launch

THREADS, CTAS = 64, 3
N = THREADS * CTAS


def run(kernel, *inputs, outputs=1, dtype=jnp.int32, ctas=CTAS, shared_words=64):
    """Outputs of one word a thread; the kernel returns the values to store."""

    operands = {f"x{j}": x for j, x in enumerate(inputs)}
    made = {f"y{j}": (THREADS * ctas, dtype) for j in range(outputs)}

    def stored(k, memory):
        values = kernel(k, *(getattr(memory, name) for name in (*operands, "control")))
        values = values if isinstance(values, tuple) else (values,)
        for name, v in zip(made, values, strict=True):
            k.store(getattr(memory, name), k.cta * k.threads + k.thread, v)

    out = launch(
        stored,
        operands,
        made,
        ctas=ctas,
        threads=THREADS,
        shared_words=shared_words,
        name="test",
        interpret=True,
    )
    return [np.asarray(x) for x in out.values()]


def index(k):
    return k.cta * k.threads + k.thread


def test_arithmetic_wraps_and_shifts_like_int32():
    x = np.array([0, 1, -1, 2**31 - 1, -(2**31), 12345, -77, 31], np.int32)
    y = np.roll(x, 3)

    def kernel(k, a, b, control):
        x, y = k.load(a, index(k) & 7), k.load(b, index(k) & 7)
        return (
            (x + y * 3) ^ (x - y),
            (x >> 3) + k.shr(y, 5),
            x // 7 + x % 7,
            k.popc(x) + k.minimum(x, y),
        )

    got = run(kernel, jnp.asarray(x), jnp.asarray(y), outputs=4)
    u = x.astype(np.int64) & 0xFFFFFFFF
    wide = y.astype(np.int64)
    expected = [
        (x + (wide * 3).astype(np.int32)) ^ (x - y),
        (x >> 3) + ((wide & 0xFFFFFFFF) >> 5).astype(np.int32),
        (u // 7 + u % 7).astype(np.int32),
        np.array([bin(int(v)).count("1") for v in u]) + np.minimum(x, y),
    ]
    for g, e in zip(got[:4], expected, strict=True):
        np.testing.assert_array_equal(g[:8], e.astype(np.int64).astype(np.int32))


def test_masked_accesses_keep_other_and_do_not_touch_memory():
    x = jnp.arange(10, dtype=jnp.int32)

    def kernel(k, a, control):
        i = index(k)
        v = k.load(a, i * 1000, mask=i == 0, other=-5)
        four = k.load_vec(a, 4 * (i & 1), 4)
        return v, four[3] + k.load(a, i + 100, mask=i < 0, other=0)

    v, last, _ = run(kernel, x, outputs=2)
    np.testing.assert_array_equal(v, [0] + [-5] * (N - 1))
    np.testing.assert_array_equal(last, np.where(np.arange(N) % 2, 7, 3))
    with pytest.raises(Exception, match="access at"):
        run(lambda k, a, control: k.load(a, index(k)), x)


def test_loops_diverge_by_thread():
    def kernel(k, control):
        (total,) = k.for_(0, k.thread, 1, lambda i, s: s + i, 0)
        return total, k.if_(k.thread > 40, lambda: total * 2, -1)[0]

    total, doubled, _ = run(kernel, outputs=2)
    t = np.arange(N) % THREADS
    np.testing.assert_array_equal(total, t * (t - 1) // 2)
    np.testing.assert_array_equal(doubled, np.where(t > 40, t * (t - 1), -1))


def test_atomics_return_old_values_that_are_all_different():
    def kernel(k, control):
        added = k.atomic("add", control, 40, 2, mask=k.lane != 3)
        won = k.atomic("or", control, 41 + k.cta, k.bit(k.thread)) & k.bit(k.thread) == 0
        swapped = k.atomic_cas(control, 50, 0, index(k) + 1)
        k.reduce("max", control, 51, index(k))
        return added, k.cast(won, "i32"), swapped

    added, won, swapped, control = run(kernel, outputs=3)
    valid = np.arange(N) % 32 != 3
    np.testing.assert_array_equal(np.sort(added[valid]), 2 * np.arange(valid.sum()))
    assert (added[~valid] == 0).all()
    # threads t and t + 32 of a CTA claim the same bit: one of them gets it
    np.testing.assert_array_equal(won.reshape(CTAS, 2, 32).sum(1), 1)
    assert (
        (swapped == 0).sum() == 1 and control[50] in swapped[swapped != 0] and control[51] == N - 1
    )


def test_warp_operations():
    x = np.random.default_rng(0).integers(-50, 50, N).astype(np.int32)

    def kernel(k, a, control):
        v = k.load(a, index(k))
        upto, total = k.warp_scan(v)
        vote = k.ballot(v > 0)
        return (
            upto,
            total - k.warp_sum(v),
            k.lanes_below(vote),
            k.shfl(v, k.lane ^ 5) - k.shfl_xor(v, 5),
        )

    upto, same, rank, zero, _ = run(kernel, jnp.asarray(x), outputs=4)
    warps = x.reshape(-1, 32)
    np.testing.assert_array_equal(upto.reshape(-1, 32), warps.cumsum(1))
    np.testing.assert_array_equal(rank.reshape(-1, 32), (warps > 0).cumsum(1) - (warps > 0))
    assert (same == 0).all() and (zero == 0).all()


def test_warp_operation_with_absent_lanes_is_refused():
    with pytest.raises(Exception, match="absent"):
        run(lambda k, control: k.if_(k.lane < 7, lambda: k.ballot(k.lane > 2), 0)[0])


def test_shared_memory_belongs_to_the_program():
    def kernel(k, control):
        a = k.shared(THREADS)
        k.store(a, k.thread, index(k))
        k.sync()
        return k.load(a, THREADS - 1 - k.thread), k.sync_count(k.thread < 10 + k.cta)

    reverse, count, _ = run(kernel, outputs=2, shared_words=THREADS)
    np.testing.assert_array_equal(
        reverse.reshape(CTAS, -1), np.arange(N).reshape(CTAS, -1)[:, ::-1]
    )
    np.testing.assert_array_equal(count.reshape(CTAS, -1)[:, 0], 10 + np.arange(CTAS))
    with pytest.raises(Exception, match="shared memory"):
        run(lambda k, control: k.load(k.shared(65), 0))


def test_float_values():
    x = jnp.asarray(np.linspace(-3, 3, N, dtype=np.float32))

    def kernel(k, a, control):
        v = k.load(a, index(k))
        big = k.where(v > 0.5, v / 2.0, k.cast(k.thread, "f32"))
        return k.bits(k.maximum(big, v), "i32"), k.cast(v * 10.0, "i32")

    a, b, _ = run(kernel, x, outputs=2)
    v = np.asarray(x)
    t = (np.arange(N) % THREADS).astype(np.float32)
    np.testing.assert_array_equal(a.view(np.float32), np.maximum(np.where(v > 0.5, v / 2, t), v))
    np.testing.assert_array_equal(b, (v * np.float32(10)).astype(np.int32))


def test_grid_barrier_adds_and_reads():
    def kernel(k, control):
        sums = k.shared(4)
        k.store(sums, k.thread, 0, mask=k.thread < 4)
        k.sync()
        k.reduce("add", sums, 1, k.thread)
        ok, total = k.grid_barrier(control, [(control, 40)], [(sums, 1, control, 40)])
        again, total2 = k.grid_barrier(control, [(control, 40)], [(sums, 1, control, 40)])
        return ok + again, total, total2

    ok, total, total2, control = run(kernel, outputs=3)
    expected = CTAS * THREADS * (THREADS - 1) // 2
    assert (ok == 2).all() and (total == expected).all() and (total2 == expected).all()
    assert control[0] == 2 * CTAS


def test_expired_barrier_ends_with_its_status():
    def kernel(k, control):
        (ok,) = k.grid_barrier(control, ctas=k.ctas + 1, limit=50)
        (later,) = k.grid_barrier(control, limit=50)
        return ok, later

    ok, later, control = run(kernel, outputs=2)
    assert (ok == 0).all() and (later == 0).all() and control[32] == 1


def test_a_counting_barrier_numbers_the_ctas():
    def kernel(k, control):
        k.reduce("or", control, 40, -(1 << 31), mask=(k.cta == 1) & (k.thread == 0))
        found = k.counting_barrier(control, 40, lambda: k.cta + 5, lambda: k.thread * 2)
        return found

    ok, before, total, flag, meanwhile, _ = run(kernel, outputs=5)
    assert (ok == 1).all() and (flag == 1).all() and (total == 5 + 6 + 7).all()
    cta = np.arange(N) // THREADS
    starts = [before[cta == c] for c in range(CTAS)]
    assert all((x == x[0]).all() for x in starts)
    ends = sorted((x[0], x[0] + 5 + c) for c, x in enumerate(starts))
    assert [a for a, _ in ends] == [0, *(b for _, b in ends)][:CTAS]  # one after the other
    np.testing.assert_array_equal(meanwhile, 2 * (np.arange(N) % THREADS))


def test_after_an_expired_counting_barrier_all_fail():
    def kernel(k, control):
        k.store(control, 40, -(1 << 23), mask=(k.cta == 0) & (k.thread == 0))
        ok, *_ = k.counting_barrier(control, 40, lambda: k.const(1), limit=50)
        (later,) = k.grid_barrier(control, limit=1000)
        return ok, later

    ok, later, control = run(kernel, outputs=2)
    assert (ok == 0).all() and (later == 0).all() and control[32] == 1


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="threads is 100"):
        launch(None, {}, {"y": 4}, ctas=1, threads=100, name="t", interpret=True)
    with pytest.raises(ValueError, match="shared_words"):
        launch(None, {}, {"y": 4}, ctas=1, threads=128, shared_words=10**6, name="t")


def test_several_values_side_by_side_are_what_each_of_them_is():
    x = np.random.default_rng(0).integers(-50, 50, 4 * N).astype(np.int32)

    def kernel(k, a, control):
        places = k.several(4, lambda j: j * N + index(k))
        value = k.load(a, places, mask=places % 3 != 1, other=7)

        def halve(value, steps):
            more = value > 5
            return k.where(more, value >> 1, value), steps + k.total(k.cast(more, "i32"))

        left, steps = k.while_(lambda value, _: k.union(value > 5), halve, value, 0)
        pair = k.load_vec(a, 2 * (places >> 1), 2)
        return k.total(left, steps), k.total(k.shfl_xor(pair[1] - pair[0], 1)), *left

    total, swapped, *left, _ = run(kernel, jnp.asarray(x), outputs=6)
    values = np.where(np.arange(4 * N) % 3 != 1, x, 7).reshape(4, N)
    steps = np.zeros(N, np.int32)
    while (values > 5).any():
        steps += (values > 5).sum(0)
        values = np.where(values > 5, values >> 1, values)
    np.testing.assert_array_equal(left, values)
    np.testing.assert_array_equal(total, steps + values.sum(0))
    apart = np.repeat(x[1::2] - x[::2], 2).reshape(4, N)
    np.testing.assert_array_equal(swapped, apart.sum(0)[np.arange(N) ^ 1])


def test_several_values_of_different_numbers_are_refused():
    def kernel(k, control):
        two, three = (k.several(many, lambda j: index(k) + j) for many in (2, 3))
        return k.total(two + three)

    with pytest.raises(ValueError, match="of 3 and of 2 values"):
        run(kernel)
