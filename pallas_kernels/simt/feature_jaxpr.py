"""Functions of rows of features as code of the lanes that hold them, primitive by primitive.

A function is traced on what ONE entry has. An array of shape (*heads, d) is a row of features, one
of shape `heads` (or with an axis of 1 behind) a number a head, one of shape () a number. The lanes
of a head hold its row side by side, `each` of its features in one of them: in a kernel a row is a
list of so many values, a number one value, the same in all lanes of the head. What acts on each
element alone runs as `scalar_jaxpr` has it; a sum over the features is one of the lane's own and
then one by shuffles. Nothing else moves between features or heads.
"""

import dataclasses
import operator
from functools import reduce

import jax
from jax.extend.core import ClosedJaxpr

from .scalar_jaxpr import KINDS, NESTED, inner, lacks, results_of, run, scalar

_SAME_ORDER = {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose"}
_SUMS = {"reduce_sum", "dot_general"}


@dataclasses.dataclass(frozen=True)
class Rowwise:
    """A function traced on what one entry has: rows of `features`, or numbers, for `heads`."""

    closed: ClosedJaxpr
    heads: tuple[int, ...] = ()
    features: int = 0

    @classmethod
    def of(cls, fn, heads, features, shapes):
        """`fn` of float32 rows and numbers of these shapes."""
        given = (jax.ShapeDtypeStruct(shape, "float32") for shape in shapes)
        return cls(jax.make_jaxpr(fn)(*given), heads, features)

    def is_row(self, aval):
        """Whether a value is a row of features."""
        return aval.shape == (*self.heads, self.features)

    def is_number(self, aval):
        """Whether a value is a number a head, or one for all."""
        return not self.is_row(aval) and aval.shape in (self.heads, (*self.heads, 1), ())

    def refuses(self):
        """Why lanes that hold features cannot compute it, or None."""
        return self._refuses(self.closed)

    def _refuses(self, closed):
        if closed.consts:
            return "it captures arrays"
        for eqn in closed.jaxpr.eqns:
            name = eqn.primitive.name
            for v in (*eqn.invars, *eqn.outvars):
                known = v.aval.dtype.name in KINDS
                if not known or not (self.is_row(v.aval) or self.is_number(v.aval)):
                    return f"`{name}` works on {v.aval.str_short()}"
            if name in NESTED:
                reason = self._refuses(inner(eqn))
            elif name in _SAME_ORDER:
                reason = None if self._in_order(eqn) else f"`{name}` moves features or heads"
            elif name in _SUMS:
                reason = None if self._adds_features(eqn) else f"`{name}` adds more than features"
            else:
                reason = lacks(eqn)
            if reason is not None:
                return reason
        return None

    def _in_order(self, eqn):
        """Whether every number stays with its head, and every feature in its place."""
        x, name = eqn.invars[0].aval, eqn.primitive.name
        if name == "transpose":
            return eqn.params["permutation"] == tuple(range(x.ndim))
        if name == "broadcast_in_dim":
            return eqn.params["broadcast_dimensions"] == tuple(range(x.ndim))
        return eqn.params.get("dimensions") is None or name != "reshape"

    def _adds_features(self, eqn):
        last = len(self.heads)
        if eqn.primitive.name == "reduce_sum":
            return tuple(eqn.params["axes"]) == (last,)
        contracted, batch = eqn.params["dimension_numbers"]
        along = (tuple(range(last)),) * 2
        return tuple(map(tuple, batch)) == along and tuple(map(tuple, contracted)) in (
            ((last,), (last,)),
            ((), ()),
        )


class Lanes:
    """How the lanes of a warp hold a row: so many `lanes` a head, and which features are real.

    real: for each of the features that a lane has whether it is one of the row; None: all are.
    """

    def __init__(self, k, lanes, each, real=None):
        self.k, self.lanes, self.each, self.real = k, lanes, each, real

    def total(self, row):
        """The sum of a row, in all lanes of its head."""
        if self.real is not None:
            row = [self.k.where(valid, x, 0.0) for valid, x in zip(self.real, row, strict=True)]
        return self.k.warp_fold(operator.add, reduce(operator.add, row), self.lanes)

    def evaluate(self, fn, *values):
        """All results of a `Rowwise`: lists are rows, kernel values numbers."""
        return self._results(fn, fn.closed, values)

    def _results(self, fn, closed, values):
        def apply(k, eqn, operands):
            if eqn.primitive.name in NESTED:
                return self._results(fn, inner(eqn), operands)
            return [self._result(fn, eqn, operands)]

        known = dict(zip(closed.jaxpr.invars, values, strict=True))
        return results_of(self.k, closed, run(self.k, closed, known, apply))

    def _result(self, fn, eqn, operands):
        name, row = eqn.primitive.name, fn.is_row(eqn.outvars[0].aval)
        if name in _SUMS:
            x = operands[0] if len(operands) == 1 else self._each(operator.mul, operands)
            return self.total(x) if isinstance(x, list) and not row else x
        if name in _SAME_ORDER:
            (x,) = operands
            if isinstance(x, list):
                return x if row else self.total(x)  # of one feature
            return [x] * self.each if row else x
        return self._each(lambda *x: scalar(self.k, eqn, x), operands)

    def _each(self, f, operands):
        """`f` of numbers, or of each feature of rows."""
        if not any(isinstance(x, list) for x in operands):
            return f(*operands)
        rows = (x if isinstance(x, list) else [x] * self.each for x in operands)
        return [f(*x) for x in zip(*rows, strict=True)]
