"""Values and control flow of one thread as code: MLIR, and PTX where MLIR leaves something open."""

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import arith, llvm, scf

from .primitives import Simt
from .typed import Value


def type_of(kind):
    if kind == "f32":
        return ir.F32Type.get()
    return ir.IntegerType.get_signless({"i1": 1, "i32": 32, "i64": 64}[kind])


_INT = {op: getattr(arith, op + "i") for op in ("add", "sub", "mul", "and", "or", "xor")}
_INT |= {"shl": arith.shli, "sar": arith.shrsi, "shr": arith.shrui, "div": arith.divui}
_INT |= {"rem": arith.remui, "min": arith.minsi, "max": arith.maxsi}
_FLOAT = {op: getattr(arith, op + "f") for op in ("add", "sub", "mul")}
_FLOAT |= {"min": arith.minimumf, "max": arith.maximumf}
_TRUTH = _INT | {"min": arith.andi, "max": arith.ori}  # as signed numbers of a bit, true is -1
_CMPI = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5, "ltu": 6}
_CMPT = _CMPI | {"lt": 6, "le": 7, "gt": 8, "ge": 9}
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13}


def _of_one(code, kind, constraints):
    """A method that is PTX on one value."""
    return lambda self, x: self._asm(code, kind, [x], constraints, False)


class Values(Simt):
    """Emits arithmetic, loops and branches into the MLIR module that is being built."""

    # values
    def const(self, x, kind="i32"):
        if isinstance(x, Value):
            return x
        if kind == "f32":
            return Value(self, arith.constant(type_of(kind), float(x)), kind)
        x = int(x)
        if kind == "i32":
            x = (x + 2**31) % 2**32 - 2**31
        elif kind == "i1":
            return Value(self, arith.cmpi(0, self.const(x).v, self.const(1).v), "i1")
        return Value(self, arith.constant(type_of(kind), x), kind)

    def binary(self, op, a, b):
        if op == "div" and a.kind == "f32":  # MLIR leaves it open how exact a division is
            return self._asm("div.rn.f32 $0, $1, $2;", "f32", [a, b], "=f,f,f", False)
        table = {"f32": _FLOAT, "i1": _TRUTH}.get(a.kind, _INT)
        return Value(self, table[op](a.v, b.v), a.kind)

    def compare(self, op, a, b):
        if a.kind == "f32":
            return Value(self, arith.cmpf(_CMPF[op], a.v, b.v), "i1")
        table = _CMPT if a.kind == "i1" else _CMPI
        return Value(self, arith.cmpi(table[op], a.v, b.v), "i1")

    def where(self, c, a, b):
        a, b = self.pair(a, b)
        return Value(self, arith.select(self.const(c, "i1").v, a.v, b.v), a.kind)

    def cast(self, x, kind):
        if x.kind == kind:
            return x
        if x.kind == "i1":
            return self.where(x, self.const(1, kind), self.const(0, kind))
        if kind == "f32":
            return Value(self, arith.sitofp(type_of(kind), x.v), kind)
        return Value(self, arith.fptosi(type_of(kind), x.v), kind)

    def bits(self, x, kind):
        return x if x.kind == kind else Value(self, arith.bitcast(type_of(kind), x.v), kind)

    def halves(self, word):
        unpack = "{ .reg .b16 l, h; mov.b32 {l, h}, $1; cvt.f32.f16 $0, "
        return tuple(self._asm(f"{unpack}{r}; }}", "f32", [word], "=f,r", False) for r in "lh")

    def pack(self, low, high, narrow):
        code = f"cvt.rn.{narrow}x2.f32 $0, $2, $1;"
        return self._asm(code, "i32", [low, high], "=r,f,f", False)

    def _asm(self, code, kind, operands, constraints, effects=True):
        out = ir.Type.parse("!llvm.void") if kind is None else type_of(kind)
        r = llvm.inline_asm(
            out, [o.v for o in operands], code, constraints, has_side_effects=effects
        )
        return None if kind is None else Value(self, r, kind)

    popc = _of_one("popc.b32 $0, $1;", "i32", "=r,r")
    ctz = _of_one("{ .reg .b32 t; brev.b32 t, $1; clz.b32 $0, t; }", "i32", "=r,r")
    sqrt = _of_one("sqrt.rn.f32 $0, $1;", "f32", "=f,f")
    exp2 = _of_one("ex2.approx.ftz.f32 $0, $1;", "f32", "=f,f")
    log2 = _of_one("lg2.approx.ftz.f32 $0, $1;", "f32", "=f,f")

    # control
    def loop(self, cond, body, *carry):
        carry = [self.const(c) for c in carry]
        kinds, types = [c.kind for c in carry], [c.v.type for c in carry]
        loop: Any = scf.WhileOp(types, [c.v for c in carry])
        before, after = loop.before.blocks.append(*types), loop.after.blocks.append(*types)
        with ir.InsertionPoint(before):
            args = self._wrap(before.arguments, kinds)
            scf.condition(self.const(cond(*args), "i1").v, [a.v for a in args])
        with ir.InsertionPoint(after):
            out = body(*self._wrap(after.arguments, kinds))
            scf.yield_([self.const(o, k).v for o, k in zip(self.as_tuple(out), kinds, strict=True)])
        return tuple(self._wrap(loop.results, kinds))

    def branch(self, cond, then, *default):
        default = [self.const(d) for d in default]
        kinds = [d.kind for d in default]
        branch: Any = scf.IfOp(
            self.const(cond, "i1").v, [d.v.type for d in default], has_else=bool(default)
        )
        with ir.InsertionPoint(branch.then_block):
            out = self.as_tuple(then())
            scf.yield_([self.const(o, k).v for o, k in zip(out, kinds, strict=True)])
        if default:
            with ir.InsertionPoint(branch.else_block):
                scf.yield_([d.v for d in default])
        return tuple(self._wrap(branch.results, kinds))

    def _wrap(self, values, kinds):
        return [Value(self, v, kind) for v, kind in zip(values, kinds, strict=True)]
