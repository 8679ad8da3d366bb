"""An addition of every kind, each in the one place CONTRIBUTING names, outside of the library.

`pytest -p toys` enters them (`pytest_configure`) before tests are collected, and the suites that
run over all there is take them unasked: `tests/project/test_one_place.py` runs these.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import oracles
from jax import Array

import jaxspv as jsp
from jaxspv._core.operation import Operation
from jaxspv._core.pytree import pytree_dataclass, static
from jaxspv.algebra import monoids, semirings
from jaxspv.formats import COO, SparseMatrix
from jaxspv.formats.base import register
from jaxspv.formats.stored import first_slots
from jaxspv.graph import as_graph
from jaxspv.ops.write_rule.call import Options, call, matrix
from jaxspv.ops.write_rule.entries import entries_of
from pallas_kernels.simt.launch import launch

# ---- an operator, a monoid, a semiring ----

shifted_product = jsp.BinaryOp(lambda x, y: x * y + x, "toy_shifted_product")
union = monoids.monoid(lambda x, y: x | y, 0, -1, name="toy_union", idempotent=True)
union = dataclasses.replace(union, dtypes="iu")
toy_semiring = semirings.semiring(monoids.min_, shifted_product)


# ---- a format ----


@pytree_dataclass
class Keyed(SparseMatrix):
    """One number a slot, column + columns * row; padding is past every number."""

    format: ClassVar[str] = "toy"
    index_fields: ClassVar[tuple[str, ...]] = ("key",)
    data: Array
    key: Array
    overflow: Array
    shape: tuple[int, int] = static()
    unique: bool = static(default=True)
    flipped: bool = static(default=False)

    @property
    def _stored(self) -> tuple[int, int]:
        return self.shape[::-1] if self.flipped else self.shape

    @property
    def count(self) -> Array:
        m, n = self._stored
        return jnp.sum(self.key < m * n, dtype=self.index_dtype)

    @property
    def row_sorted(self) -> bool:
        return not self.flipped

    @property
    def T(self) -> Keyed:
        return dataclasses.replace(self, shape=self.shape[::-1], flipped=not self.flipped)

    def check_invariants(self) -> Keyed:
        self.to_coo().check_invariants()
        return self

    def in_capacity(self, nse: int) -> Keyed:
        data, key = first_slots((self.data, self.key), nse)
        return dataclasses.replace(self, data=data, key=key)

    def rowcol(self) -> tuple[Array, Array]:
        m, n = self._stored
        valid = self.key < m * n
        row = jnp.where(valid, self.key // max(n, 1), m)
        col = jnp.where(valid, self.key % max(n, 1), n)
        return (col, row) if self.flipped else (row, col)

    def to_coo(self) -> COO:
        row, col = self.rowcol()
        found = COO(self.data, row, col, self.overflow, self.shape, not self.flipped, self.unique)
        return found.to_coo()

    @classmethod
    def from_coo(cls, coo: COO) -> Keyed:
        m, n = coo.shape
        key = jnp.where(coo.row < m, coo.row * n + coo.col, m * n)
        return cls(coo.data, key, coo.overflow, coo.shape, coo.unique)


# ---- an operation of GraphBLAS, an operation with a kernel, an algorithm ----


def _halved(A: Any) -> Any:
    e = entries_of(A)
    return dataclasses.replace(e, data=e.data / 2)


def halve(A: Any, *, mask: Any = None, accum: Any = None, out: Any = None, replace: bool = False):
    """`C[i, j] = A[i, j] / 2`."""
    A = matrix("A", A)
    return call(_halved, (A,), Options(mask, accum, out, replace), format=A.format)


doubled = Operation("toy_doubled", lambda primals, tangents, result: 2 * tangents[0])


@doubled.register("twice")
def _twice(x):
    return x + x


@doubled.register("turns", backend="cpu")
def _turns(x):
    def turn(c):
        i, y = c
        return i + 1, y.at[i].multiply(2)

    return jax.lax.while_loop(lambda c: c[0] < x.shape[0], turn, (jnp.int32(0), x))[1]


def double_by_kernel(x: Array, *, interpret: bool = False) -> Array:
    """Traffic: 8 bytes an element, once; no atomics."""

    def kernel(k, m):
        k.spread(x.shape[0], lambda i: k.store(m.y, i, k.load(m.x, i) * 2.0))

    return launch(
        kernel,
        {"x": x},
        {"y": (x.shape[0], jnp.float32)},
        ctas=2,
        threads=128,
        name="toy_doubled",
        interpret=interpret,
    )["y"]


@doubled.register("kernel", backend="pallas")
def _kernel(x):
    return double_by_kernel(x)


def far(G: Any, source: Any) -> Array:
    """Twice the largest number of hops from the source: an algorithm of operations there are."""
    levels = jsp.bfs(as_graph(G, "far"), source, parents=False).levels
    return doubled(jnp.max(levels).astype(jnp.float32)[None])[0]


def pytest_configure(config):
    """The lines that would stand in the library: one a kind."""
    register(Keyed)
    monoids.ALL += (union,)
    oracles.ADD["toy_union"] = (np.bitwise_or, 0)
