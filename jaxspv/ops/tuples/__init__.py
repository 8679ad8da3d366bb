"""Operations on matrices and vectors of tuples: places by numbers, values by gathers and scans.

Each takes what the public function of its name takes; `overloadable` comes here when an operand is
a `Tuples`, or the semiring or monoid is one of tuples. Which entries a result has is computed by
the operation on numbers; the values are gathered, joined by the user's functions mapped over them,
and reduced in the order of the entries.
"""
