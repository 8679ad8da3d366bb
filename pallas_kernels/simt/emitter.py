"""The primitives of `launch.py` as code of one thread: MLIR and PTX.

Every primitive is one or a few instructions, put into the kernel that Mosaic GPU builds through
`inline_mgpu`: arithmetic and control flow as MLIR, memory accesses and atomics as PTX (whose cache
operators, scopes and predicates MLIR does not offer alike in all versions of JAX).
"""

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import arith, gpu, llvm, nvvm

from .typed import Array, Value
from .values import Values, type_of


class Memory(Array):
    """An array in a kernel: base address (i64 in global, i32 in shared memory), kind and size.

    scope: of atomics and "fresh" loads: "gpu", or "sys" for the threads of all devices. ref: the
    memref of Mosaic GPU.
    """

    def __init__(self, base, kind, size, space, scope="gpu", ref=None):
        self.base, self.kind, self.size, self.space = base, kind, size, space
        self.scope, self.ref = scope, ref


def _constraint(kind):
    """The register class in the constraints of inline PTX."""
    return "f" if kind == "f32" else "r"


def _width(kind):
    """The type of a word in PTX."""
    return "f32" if kind == "f32" else "b32"


_LOADS = {None: "ld.global", "nc": "ld.global.nc", "stream": "ld.global.nc.L1::no_allocate"}


class Emitter(Values):
    """Emits one GPU thread's code into the MLIR module that Mosaic GPU is building."""

    def __init__(self, ctas, threads, shared, devices, remote, capability):
        """capability: the lowest compute capability of the GPUs that run the code."""
        self.adds_vectors = capability >= (9, 0)
        self.ctas, self.threads, self.devices, self._remote = ctas, threads, devices, remote
        self._shared_base, self._shared_words, self._shared_used = shared[0], shared[1], 0
        ids = [self._index(gpu.thread_id(d)) for d in gpu.Dimension]
        dims = [self._index(gpu.block_dim(d)) for d in gpu.Dimension]
        blocks = [self._index(gpu.block_id(d)) for d in gpu.Dimension]
        grid = [self._index(gpu.grid_dim(d)) for d in gpu.Dimension]
        self.thread = ids[0] + dims[0] * (ids[1] + dims[1] * ids[2])
        self.cta = blocks[0] + grid[0] * (blocks[1] + grid[1] * blocks[2])
        self.lane, self.warp = self.thread & 31, self.shr(self.thread, 5)
        self._slot = self.shared(8)

    def _index(self, v):
        return Value(self, arith.index_cast(type_of("i32"), v), "i32")

    # memory
    def shared(self, words, kind="i32"):
        offset, self._shared_used = self._shared_used, self._shared_used + -(-words // 4) * 4
        used, most = self._shared_used, self._shared_words
        if used > most:
            raise ValueError(f"{used} words of shared memory used, {most} asked for")
        base = arith.addi(self._shared_base, self.const(4 * offset).v)
        return Memory(base, kind, words, "shared")

    def _address(self, a, i):
        i = self.const(i)
        if a.space == "shared":
            return Value(self, arith.addi(a.base, (i << 2).v), "i32")
        return self._global_address(a, i, 2)

    def _global_address(self, a, i, shift):
        wide = arith.shli(arith.extsi(type_of("i64"), i.v), self.const(shift, "i64").v)
        return Value(self, arith.addi(a.base, wide), "i64")

    def _predicated(self, code, kind, a, i, values, mask, outs=1):
        """Emits `code` (with {addr}, and {0}, {1}, ... for values) under `mask`; where masked off,
        outputs are undefined unless `code` sets them before: so they share no input's register.
        """
        operands, n = [self._address(a, i), *values], outs if kind is not None else 0
        names = [f"${n + j}" for j in range(len(operands))]
        early = "&" if n > 1 or mask is not None else ""
        cons = [f"={early}{_constraint(kind)}"] * n + ["l" if a.space == "global" else "r"]
        cons += [_constraint(v.kind) for v in values]
        pre = ""
        if mask is not None:
            operands.append(self.cast(mask, "i32"))
            cons.append("r")
            pre = f".reg .pred p; setp.ne.b32 p, ${n + len(names)}, 0; "
        code = code.format(*names[1:], addr=f"[{names[0]}]", p="@p " if pre else "")
        code = f"{{ {pre}{code} }}"
        if n <= 1 or kind is None:
            return self._asm(code, kind, operands, ",".join(cons))
        out = ir.Type.parse(f"!llvm.struct<({', '.join([str(type_of(kind))] * n)})>")
        r: Any = llvm.inline_asm(
            out, [o.v for o in operands], code, ",".join(cons), has_side_effects=True
        )
        return tuple(Value(self, llvm.extractvalue(type_of(kind), r, [j]), kind) for j in range(n))

    def _load_op(self, a, cache):
        if a.space == "shared":
            return "ld.volatile.shared"
        if cache in ("fresh", "acquire"):
            return f"ld.{'relaxed' if cache == 'fresh' else cache}.{a.scope}.global"
        return _LOADS[cache]

    def load(self, a, i, mask=None, other=0, cache=None):
        return self.load_vec(a, i, 1, mask, other, cache)[0]

    def load_vec(self, a, i, width, mask=None, other=0, cache=None):
        ptx, op, code, values = _width(a.kind), self._load_op(a, cache), "", ()
        names = [f"${j}" for j in range(width)]
        if mask is not None:
            values = (self.const(other, a.kind),)
            code = "".join(f"mov.{ptx} {name}, {{0}}; " for name in names)
        op, regs = (f"{op}.v{width}", f"{{{{{', '.join(names)}}}}}") if width > 1 else (op, "$0")
        code += f"{{p}}{op}.{ptx} {regs}, {{addr}};"
        found: Any = self._predicated(code, a.kind, a, i, values, mask, outs=width)
        return found if width > 1 else (found,)

    def store(self, a, i, v, mask=None):
        self.store_vec(a, i, [v], mask)

    def store_vec(self, a, i, values, mask=None):
        values, width, regs = [self.const(v, a.kind) for v in values], "", "{0}"
        if len(values) > 1:
            names = ", ".join(f"{{{j}}}" for j in range(len(values)))
            width, regs = f".v{len(values)}", f"{{{{{names}}}}}"
        op = "st.volatile.shared" if a.space == "shared" else "st.global"
        code = f"{{p}}{op}{width}.{_width(a.kind)} {{addr}}, {regs};"
        self._predicated(code, None, a, i, values, mask)

    def _half(self, a, i):
        return self._global_address(a, self.const(i), 1)

    def load_half(self, a, i):
        return self._asm("ld.global.u16 $0, [$1];", "i32", [self._half(a, i)], "=r,l")

    def store_half(self, a, i, v, mask):
        code = "{ .reg .pred p; setp.ne.b32 p, $2, 0; @p st.global.u16 [$0], $1; }"
        self._asm(code, None, [self._half(a, i), v, self.cast(mask, "i32")], "l,r,r")

    def store_pair(self, a, i, x, y, mask=None):
        code = ".reg .b64 q; mov.b64 q, {{{0}, {1}}}; {p}st.relaxed.SCOPE.global.b64 {addr}, q;"
        values = [self.const(v, a.kind) for v in (x, y)]
        self._predicated(code.replace("SCOPE", a.scope), None, a, i, values, mask)

    def load_pair(self, a, i, mask=None, acquire=True):
        order = f"{'acquire' if acquire else 'relaxed'}.{a.scope}"
        code = f".reg .b64 q; mov.b64 q, 0; {{p}}ld.{order}.global.b64 q, {{addr}}; "
        code += "mov.b64 {{$0, $1}}, q;"
        return self._predicated(code, a.kind, a, i, (), mask, outs=2)

    def least_pair(self, a, i, x, y, mask=None):
        code = f".reg .b64 q; mov.b64 q, {{{{{{0}}, {{1}}}}}}; {{p}}red.relaxed.{a.scope}.global"
        code += ".min.s64 {addr}, q;"
        self._predicated(code, None, a, i, [self.const(v, a.kind) for v in (x, y)], mask)

    def prefetch(self, a, i, mask=None):
        self._predicated("{p}prefetch.global.L2 {addr};", None, a, i, (), mask)

    def _atomic_op(self, op, a, head, order="relaxed"):
        scope = "cta" if a.space == "shared" else a.scope
        suffix = {"or": "b32", "and": "b32", "xor": "b32", "exch": "b32", "cas": "b32"}.get(op)
        suffix = suffix or ("f32" if a.kind == "f32" else "u32" if op == "add" else "s32")
        return f"{head}.{order}.{scope}.{a.space}.{op}.{suffix}"

    def atomic(self, op, a, i, v, mask=None, order="relaxed"):
        v, mask = self.const(v, a.kind), self.const(True, "i1") if mask is None else mask
        ptx, zero = ("f32", "0f00000000") if a.kind == "f32" else ("b32", "0")
        op = self._atomic_op(op, a, "atom", order)
        code = f"mov.{ptx} $0, {zero}; {{p}}{op} $0, {{addr}}, {{0}};"
        return self._predicated(code, a.kind, a, i, (v,), mask)

    def reduce(self, op, a, i, v, mask=None):
        v = self.const(v, a.kind)
        code = f"{{p}}{self._atomic_op(op, a, 'red')} {{addr}}, {{0}};"
        self._predicated(code, None, a, i, (v,), mask)

    def reduce_vec(self, a, i, values, mask=None):
        if len(values) == 1 or not self.adds_vectors:
            for j, v in enumerate(values):
                self.reduce("add", a, i + j, v, mask)
            return
        regs = ", ".join(f"{{{j}}}" for j in range(len(values)))
        code = f"{{p}}red.relaxed.gpu.global.add.v{len(values)}.f32 {{addr}}, {{{{{regs}}}}};"
        self._predicated(code, None, a, i, values, mask)

    def atomic_cas(self, a, i, compare, v, mask=None):
        compare, v = self.const(compare, a.kind), self.const(v, a.kind)
        mask = self.const(True, "i1") if mask is None else mask
        op = self._atomic_op("cas", a, "atom")
        code = f"mov.b32 $0, 0; {{p}}{op} $0, {{addr}}, {{0}}, {{1}};"
        return self._predicated(code, a.kind, a, i, (compare, v), mask)

    # warp, CTA, grid
    def ballot(self, b):
        full, kind = self.const(-1).v, nvvm.VoteSyncKind.ballot
        return Value(self, nvvm.vote_sync(full, self.const(b, "i1").v, kind), "i32")

    def _shuffle(self, v, by, kind, clamp):
        full = self.const(-1).v
        r = nvvm.shfl_sync(full, v.v, self.const(by).v, self.const(clamp).v, kind)
        return Value(self, r, v.kind)

    def shfl(self, v, lane):
        return self._shuffle(v, lane, nvvm.ShflKind.idx, 31)

    def shfl_up(self, v, d):
        return self._shuffle(v, d, nvvm.ShflKind.up, 0)

    def shfl_xor(self, v, d):
        return self._shuffle(v, d, nvvm.ShflKind.bfly, 31)

    def sync_warp(self):
        self._asm("bar.warp.sync 0xffffffff;", None, [], "~{memory}")

    def sync(self):
        gpu.barrier()

    def sync_count(self, b):
        code = "{ .reg .pred p; setp.ne.b32 p, $1, 0; bar.red.popc.u32 $0, 0, p; }"
        return self._asm(code, "i32", [self.cast(self.const(b, "i1"), "i32")], "=r,r")

    def fence(self, scope="gpu"):
        self._asm(f"fence.acq_rel.{scope};", None, [], "~{memory}")

    def on(self, a, device):
        """The array that `a` is on another device of the mesh."""
        if self.devices == 1:
            return a
        base = self._remote(a.ref, self.const(device).v)
        return Memory(base, a.kind, a.size, "global", "sys")

    def either(self, c, a, b):
        """For loads: of two arrays of global memory a where c, else b."""
        return Memory(arith.select(c.v, a.base, b.base), a.kind, None, "global", a.scope)

    def clock(self):
        return self._asm("mov.u32 $0, %clock;", "i32", [], "=r")

    def pause(self, nanoseconds):
        self._asm(f"nanosleep.u32 {nanoseconds};", None, [], "")
