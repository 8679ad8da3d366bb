"""Slots of sorted keys: the form in C++ against the one in XLA, and both against Python's sets."""

import bisect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxspv.native import bind
from jaxspv.ops.write_rule.slots import chosen_slots, search, unite

pytestmark = pytest.mark.fast


@pytest.fixture(params=["cpu", "xla"])
def backend(request):
    if request.param == "cpu" and (reason := bind.refused()):
        pytest.skip(reason)
    return request.param


def _keys(rng, axes, count, size):
    """(sorted distinct tuples, their arrays with padding at the extent 9)."""
    found = sorted({tuple(rng.integers(0, 9, axes).tolist()) for _ in range(count)})
    padded = np.full((axes, size), 9, np.int32)
    padded[:, : len(found)] = np.reshape(found, (-1, axes)).T
    return found, tuple(jnp.asarray(k) for k in padded)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_union_and_search_of_keys(backend, axes, seed):
    rng = np.random.default_rng(seed)
    (a, in_a), (b, in_b) = (_keys(rng, axes, count, 12) for count in (seed * 3, 9))
    together, capacity = sorted({*a, *b}), 24
    counts = jnp.int32(len(a)), jnp.int32(len(b))
    left, right, count = unite(in_a, counts[0], in_b, counts[1], capacity=capacity, backend=backend)
    assert int(count) == len(together)
    for slots, own in ((left, a), (right, b)):
        want = [own.index(k) if k in own else 12 for k in together]
        assert slots.tolist() == want + [12] * (capacity - len(want))
    wanted = tuple(jnp.asarray(rng.integers(0, 9, 7), jnp.int32) for _ in range(axes))
    found = search(in_b, wanted, backend=backend)
    rows = list(zip(*(k.tolist() for k in in_b), strict=True))
    keys = zip(*(w.tolist() for w in wanted), strict=True)
    assert found.tolist() == [bisect.bisect_left(rows, key) for key in keys]


def test_chosen_slots_and_their_number(backend):
    chosen = jnp.asarray([True, False, True, True, False])
    for capacity in (0, 2, 3, 6):
        slots, count = chosen_slots(
            chosen, capacity=capacity, dtype=jnp.dtype("int32"), backend=backend
        )
        assert slots.tolist() == ([0, 2, 3] + [5] * 6)[:capacity] and int(count) == 3


def test_lanes_of_vmap(backend):
    lanes = jnp.asarray([[True, False, True], [False, False, True]])
    run = jax.vmap(lambda c: chosen_slots(c, capacity=2, dtype=jnp.dtype("int32"), backend=backend))
    slots, count = run(lanes)
    assert slots.tolist() == [[0, 2], [2, 3]] and count.tolist() == [2, 1]


def test_int64_keys_go_to_xla():
    with jax.enable_x64(True):
        keys = (jnp.asarray([2, 2**40], jnp.int64),)
        assert search(keys, (jnp.asarray([3, 2**41], jnp.int64),)).tolist() == [1, 2]
