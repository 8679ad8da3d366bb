"""The primitives of `launch.py` in lock step over NumPy arrays: what kernels do, tested without a
GPU.

All threads of all CTAs take every step together; where they diverge, under a mask. It is one of the
orders a GPU may choose, so it shows wrong logic, out-of-range and uninitialised accesses (outputs
and shared memory start as garbage) and warp operations with absent lanes; it cannot show a missing
barrier.
"""

import jax.numpy as jnp
import numpy as np

from .primitives import Simt
from .typed import Array, Value

_DTYPES = {"i32": np.int32, "f32": np.float32, "i1": np.bool_}
_NARROW = {"bf16": jnp.bfloat16, "f16": np.float16}
_ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
_ARITHMETIC |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
_ARITHMETIC |= {"shl": np.left_shift, "sar": np.right_shift, "min": np.minimum, "max": np.maximum}
_ATOMICS = {op: _ARITHMETIC[op] for op in ("add", "or", "and", "xor", "min", "max")}
_ATOMICS |= {"exch": lambda x, y: y}
_RELATIONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal}
_RELATIONS |= {"gt": np.greater, "ge": np.greater_equal}
GARBAGE = np.int32(-1163005939)  # 0xBAADF00D + ...: any value no kernel would write


class _Memory(Array):
    """An array (rows, size): a row for each CTA (shared memory) or for each device (global memory).

    `device` selects the row of another device than that of the thread.
    """

    def __init__(self, data, kind, space, device=None):
        self.data, self.kind, self.space, self.device = data, kind, space, device
        self.size = data.shape[-1]


class _Either(Array):
    """Selects between two arrays in each lane: a where `first` holds, else b."""

    def __init__(self, first, a, b):
        self.first, self.a, self.b, self.kind = first, a, b, a.kind
        self.size, self.space = None, "global"


def _of_floats(f):
    def method(self, x):
        with np.errstate(all="ignore"):
            return Value(self, f(x.v), x.kind)

    return method


class Lockstep(Simt):
    """Runs a kernel for `ctas` x `threads` threads of all devices in lock step; a value is one
    array over all of these threads.
    """

    def __init__(self, devices, ctas, threads, shared_words):
        self.devices, self.ctas, self.threads = devices, ctas, threads
        self.n, self._words, self._used = devices * ctas * threads, shared_words, 0
        self.mask = np.ones(self.n, bool)
        ids = np.arange(self.n, dtype=np.int32)
        self.thread = Value(self, ids % threads, "i32")
        self.cta = Value(self, ids // threads % ctas, "i32")
        self.lane, self.warp = self.thread & 31, self.shr(self.thread, 5)
        self._slot = self.shared(8)

    # values
    def const(self, x, kind="i32"):
        if isinstance(x, Value):
            return x
        x = (int(x) + 2**31) % 2**32 - 2**31 if kind == "i32" else x
        return Value(self, np.full(self.n, x, _DTYPES[kind]), kind)

    def binary(self, op, a, b):
        x, y = a.v, b.v
        with np.errstate(all="ignore"):
            if op in ("div", "rem") and a.kind == "i32":
                y = np.where(y == 0, 1, y).astype(np.uint32)
                r = x.view(np.uint32) // y if op == "div" else x.view(np.uint32) % y
            elif op == "shr":
                r = x.view(np.uint32) >> y.view(np.uint32)
            else:
                r = _ARITHMETIC[op](x, y)
        return Value(self, _view(r).astype(_DTYPES[a.kind], copy=False), a.kind)

    def compare(self, op, a, b):
        if op == "ltu":
            return Value(self, a.v.view(np.uint32) < b.v.view(np.uint32), "i1")
        return Value(self, _RELATIONS[op](a.v, b.v), "i1")

    def where(self, c, a, b):
        a, b = self.pair(a, b)
        return Value(self, np.where(self.const(c, "i1").v, a.v, b.v), a.kind)

    def cast(self, x, kind):
        with np.errstate(all="ignore"):
            return Value(self, x.v.astype(_DTYPES[kind]), kind)

    def bits(self, x, kind):
        return Value(self, np.ascontiguousarray(x.v).view(_DTYPES[kind]), kind)

    def halves(self, word):
        both = np.ascontiguousarray(word.v).view(np.float16).reshape(-1, 2)
        return tuple(Value(self, both[:, j].astype(np.float32), "f32") for j in range(2))

    def pack(self, low, high, narrow):
        with np.errstate(all="ignore"):
            both = np.stack([low.v, high.v], 1).astype(_NARROW[narrow])
        return Value(self, both.view(np.int32).reshape(-1), "i32")

    def popc(self, x):
        return Value(self, np.bitwise_count(x.v.view(np.uint32)).astype(np.int32), "i32")

    sqrt, exp2, log2 = map(_of_floats, (np.sqrt, np.exp2, np.log2))

    def ctz(self, x):
        zeros = np.bitwise_count(((x.v & -x.v) - 1).view(np.uint32))
        return Value(self, zeros.astype(np.int32), "i32")

    # control
    def loop(self, cond, body, *carry):
        carry = [self.const(c) for c in carry]
        outer = self.mask
        active = outer
        while True:
            self.mask = active
            active = active & self.const(cond(*carry), "i1").v
            if not active.any():
                break
            self.mask = active
            out = self.as_tuple(body(*carry))
            carry = self._merge(active, out, carry)
        self.mask = outer
        return tuple(carry)

    def branch(self, cond, then, *default):
        default = [self.const(d) for d in default]
        outer = self.mask
        self.mask = outer & self.const(cond, "i1").v
        if self.mask.any():
            out = self.as_tuple(then())
            default = self._merge(self.mask, out, default)
        self.mask = outer
        return tuple(default)

    def _merge(self, active, new, old):
        new = [self.const(x, o.kind) for x, o in zip(new, old, strict=True)]
        kinds, carried = [x.kind for x in new], [o.kind for o in old]
        if kinds != carried:
            raise TypeError(f"kinds {kinds} where {carried} are carried")
        each = zip(new, old, strict=True)
        return [Value(self, np.where(active, x.v, o.v), o.kind) for x, o in each]

    # memory
    def shared(self, words, kind="i32"):
        self._used += -(-words // 4) * 4
        if self._used > self._words:
            raise ValueError(f"{self._used} words of shared memory used, {self._words} asked for")
        places = self.devices * self.ctas
        return _Memory(np.full((places, words), GARBAGE).view(_DTYPES[kind]), kind, "shared")

    def _where(self, a, i, mask, width=1):
        """The active lanes and the indices that they access in the flat array."""
        m = self.mask if mask is None else self.mask & self.const(mask, "i1").v
        lanes = np.flatnonzero(m)
        at = self.const(i).v[lanes].astype(np.int64)
        if len(at) and (at.min() < 0 or at.max() + width > a.size or (at % width).any()):
            raise IndexError(f"access at {at.min()}..{at.max()} (width {width}) of {a.size} words")
        if a.device is not None:
            return lanes, at + a.device.v[lanes].astype(np.int64) * a.size
        sharing = self.threads * (1 if a.space == "shared" else self.ctas)  # threads of one row
        return lanes, at + lanes // sharing * a.size

    def on(self, a, device):
        return _Memory(a.data, a.kind, a.space, self.const(device))

    def either(self, c, a, b):
        return _Either(c, a, b)

    def load(self, a, i, mask=None, other=0, cache=None):
        return self.load_vec(a, i, 1, mask, other)[0]

    def load_vec(self, a, i, width, mask=None, other=0, cache=None):
        if isinstance(a, _Either):
            mask = self.const(True if mask is None else mask, "i1")
            of = (a.a, mask & a.first), (a.b, mask & ~a.first)
            near, far = (self.load_vec(m, i, width, here, other) for m, here in of)
            return tuple(self.where(a.first, x, y) for x, y in zip(near, far, strict=True))
        lanes, at = self._where(a, i, mask, width)
        out = []
        for j in range(width):
            r = self.const(other, a.kind).v.copy()
            r[lanes] = a.data.reshape(-1)[at + j]
            out.append(Value(self, r, a.kind))
        return tuple(out)

    def store(self, a, i, v, mask=None):
        self.store_vec(a, i, [v], mask)

    def store_vec(self, a, i, values, mask=None):
        lanes, at = self._where(a, i, mask, len(values))
        for j, v in enumerate(values):
            a.data.reshape(-1)[at + j] = self.const(v, a.kind).v[lanes]

    def load_half(self, a, i):
        lanes, at = self._where(a, self.const(i) // 2, None)
        odd = self.const(i).v[lanes] & 1
        found = self.const(0).v.copy()
        found[lanes] = a.data.reshape(-1).view(np.uint16)[2 * at + odd]
        return Value(self, found, "i32")

    def store_half(self, a, i, v, mask):
        lanes, at = self._where(a, self.const(i) // 2, mask)
        odd = self.const(i).v[lanes] & 1
        a.data.reshape(-1).view(np.uint16)[2 * at + odd] = v.v[lanes].astype(np.uint16)

    def store_pair(self, a, i, x, y, mask=None):
        self.store_vec(a, i, [x, y], mask)

    def load_pair(self, a, i, mask=None, acquire=True):
        return self.load_vec(a, i, 2, mask)

    def least_pair(self, a, i, x, y, mask=None):
        lanes, at = self._where(a, i, mask, 2)
        flat, x, y = a.data.reshape(-1), self.const(x).v, self.const(y).v
        for lane, p in zip(lanes, at, strict=True):
            new = int(y[lane]), int(x[lane].view(np.uint32))
            if new < (int(flat[p + 1]), int(flat[p].view(np.uint32))):
                flat[p], flat[p + 1] = x[lane], y[lane]

    def prefetch(self, a, i, mask=None):
        self._where(a, i, mask)

    def atomic(self, op, a, i, v, mask=None, order="relaxed"):
        f = _ATOMICS[op]
        values = self.const(v, a.kind).v
        return self._atomic(a, i, mask, lambda x, lane: f(x, values[lane]))

    reduce = atomic

    def reduce_vec(self, a, i, values, mask=None):
        self._where(a, i, mask, len(values))
        for j, v in enumerate(values):
            self.reduce("add", a, i + j, v, mask)

    def atomic_cas(self, a, i, compare, v, mask=None):
        c, v = self.const(compare, a.kind).v, self.const(v, a.kind).v
        return self._atomic(a, i, mask, lambda x, lane: v[lane] if x == c[lane] else x)

    def _atomic(self, a, i, mask, f):
        lanes, at = self._where(a, i, mask)
        old, flat = self.const(0, a.kind).v.copy(), a.data.reshape(-1)
        with np.errstate(all="ignore"):
            for lane, p in zip(lanes, at, strict=True):
                old[lane] = flat[p]
                flat[p] = f(flat[p], lane)
        return Value(self, old, a.kind)

    # warp, CTA, grid
    def _groups(self, size, what):
        m = self.mask.reshape(-1, size)
        if (m.any(1) != m.all(1)).any():
            raise RuntimeError(f"{what} with some of its threads absent")

    def ballot(self, b):
        self._groups(32, "a warp operation")
        bits = (self.const(b, "i1").v & self.mask).reshape(-1, 32)
        words = (bits.astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(1, dtype=np.uint32)
        return Value(self, np.repeat(words, 32).view(np.int32), "i32")

    def _shuffle(self, v, source):
        self._groups(32, "a warp operation")
        base = np.arange(self.n) // 32 * 32
        return Value(self, v.v[base + source], v.kind)

    def shfl(self, v, lane):
        return self._shuffle(v, self.const(lane).v & 31)

    def shfl_up(self, v, d):
        lane = np.arange(self.n) % 32
        return self._shuffle(v, np.where(lane >= self.const(d).v, lane - self.const(d).v, lane))

    def shfl_xor(self, v, d):
        return self._shuffle(v, np.arange(self.n) % 32 ^ self.const(d).v)

    def sync_warp(self):
        self._groups(32, "a barrier of a warp")

    def sync(self):
        self._groups(self.threads, "a CTA barrier")

    def sync_count(self, b):
        self.sync()
        count = (self.const(b, "i1").v & self.mask).reshape(-1, self.threads).sum(1)
        return Value(self, np.repeat(count.astype(np.int32), self.threads), "i32")

    def fence(self, scope="gpu"):
        pass

    def clock(self):
        return self.const(0)


def run(job, devices):
    """Runs a `launch.Job`; returns its outputs (NumPy arrays), then `inout` as it left them.

    Here the outputs of the job include `inout`. The first axis of all inputs and results is the
    device; the devices run in lock step too.
    """
    kinds = {np.dtype(np.int32): "i32", np.dtype(np.uint32): "i32", np.dtype(np.float32): "f32"}
    views = [_view(np.array(x)) for x in job.inputs]
    outs = [
        np.full((devices, int(np.prod(o.shape))), GARBAGE).view(_view(np.empty(0, o.dtype)).dtype)
        for o in job.outputs
    ]
    for out, start in zip(outs[len(outs) - len(job.inout) :], job.inout, strict=True):
        out[:] = _view(start).reshape(devices, -1)
    memories = [_Memory(x.reshape(devices, -1), kinds[x.dtype], "global") for x in (*views, *outs)]
    job.kernel(Lockstep(devices, job.ctas, job.threads, job.shared_words), *memories)
    shapes = zip(outs, job.outputs, strict=True)
    return [o.view(s.dtype).reshape(devices, *s.shape) for o, s in shapes]


def _view(x):
    return x.view(np.int32) if x.dtype == np.uint32 else x
