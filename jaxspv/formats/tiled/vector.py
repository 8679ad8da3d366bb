"""Vectors cut into tiles: TiledVector with values, BitVector with one bit an entry."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import fitting
from ..._core.indices import within
from ..._core.pytree import describe, is_concrete, pytree_dataclass, static
from ...shapes import Bool, Int, Number, Shaped, UInt
from ..invariants import check, of_bits, of_vector_tiles
from ..methods import NoValue
from ..vector import SparseVector, from_present
from .arrangement import check_size


@pytree_dataclass
class TiledVector(NoValue):
    """The non-empty tiles of a vector, side by side, and where each of them is.

    Entry j is at `nt * x_ptr[j // nt] + j % nt` of `x_tile`, if `x_ptr[j // nt] >= 0` and its bit
    is set in `bits`: an entry is stored whatever its value.

    Attributes:
        x_ptr: (ceil(n / nt),) int32, the number of the tile among the stored ones; -1: empty.
        x_tile: (t * nt,) values; what lies where no bit is set is arbitrary.
        bits: (t * max(nt / 32, 1),) uint32, which entries are stored; 0 in padding.
        overflow: bool scalar; some operation dropped entries for want of capacity.
        shape: (n,), static.
        nt: 16, 32 or 64, static.

    Source: Ji et al., "TileSpMSpV", ICPP 2022, section 3.2.2.

    >>> import jaxspv as jsp
    >>> x = jsp.vector_from_entries([1, 40, 47], [1.0, 2.0, 3.0], 50)
    >>> t = TiledVector.from_sparse(x, nt=16)
    >>> t.x_ptr.tolist(), t.bits.tolist(), float(t.x_tile[16 + 8])
    ([0, -1, 1, -1], [2, 33024, 0], 2.0)
    """

    x_ptr: Int[Array, " tiles"]
    x_tile: Shaped[Array, " slots"]
    bits: UInt[Array, " words"]
    overflow: Bool[Array, ""]
    shape: tuple[int] = static()
    nt: int = static(default=16)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.x_tile.dtype

    @property
    def count(self) -> Int[Array, ""]:
        """The number of stored entries, int32."""
        return jnp.sum(lax.population_count(self.bits), dtype=jnp.uint32).astype(jnp.int32)

    @classmethod
    def from_sparse(cls, x: SparseVector, nt: int = 16, *, tiles: int | None = None) -> TiledVector:
        """The tiles of a sparse vector.

        Args:
            x: entries in any order; equal places are added up.
            nt: 16, 32 or 64.
            tiles: capacity for non-empty tiles; None: as many as the entries and the length allow.

        Returns:
            The same entries; those of tiles beyond the capacity are dropped and set `overflow`.
        """
        x = x if x.unique else x.canonical()
        (n,), each = x.shape, max(check_size(nt) // 32, 1)
        across = -(-n // nt)
        capacity = max(min(x.nse, across) if tiles is None else tiles, 1)
        index = jnp.where(x.valid(), x.indices, n)
        into = jnp.where(index < n, index // nt, across)
        used = jnp.zeros(across, bool).at[into].set(True, mode="drop")
        rank = jnp.cumsum(used, dtype=jnp.int32) - 1
        x_ptr = jnp.where(used & (rank < capacity), rank, -1)
        tile = x_ptr.at[index // nt].get(mode="fill", fill_value=-1) if across else index - n - 1
        inside = (index < n) & (tile >= 0)
        place = jnp.where(inside, tile * nt + index % nt, capacity * nt)
        x_tile = jnp.zeros(capacity * nt, x.dtype).at[place].set(x.data, mode="drop")
        word = jnp.where(inside, tile * each + index % nt // 32, capacity * each)
        bit = jnp.uint32(1) << (index % min(nt, 32)).astype(jnp.uint32)
        bits = jnp.zeros(capacity * each, jnp.uint32).at[word].add(bit, mode="drop")
        lost = jnp.sum(used, dtype=jnp.int32) > capacity
        return cls(x_ptr, x_tile, bits, x.overflow | lost, x.shape, nt)

    def check_invariants(self) -> TiledVector:
        """This object, if its pointers and bits are what is promised; values are not read.

        Raises:
            ValueError: they are not, or they are traced.
        """
        return check(self, ("x_ptr", "x_tile", "bits"), of_vector_tiles)

    def lookup(self, index: Int[Array, " k"]) -> tuple[Shaped[Array, " k"], Bool[Array, " k"]]:
        """(values, stored) of the given places; an index from n on is not stored."""
        nt, each = self.nt, max(self.nt // 32, 1)
        if self.x_ptr.shape[0] == 0:
            return jnp.zeros(index.shape, self.dtype), jnp.zeros(index.shape, bool)
        tile = self.x_ptr.at[index // nt].get(mode="fill", fill_value=-1)
        here = (tile >= 0) & (index < self.shape[0])
        tile = jnp.where(here, tile, 0)
        word = self.bits[tile * each + index % nt // 32]
        bit = (word >> (index % min(nt, 32)).astype(jnp.uint32)) & 1
        return self.x_tile[tile * nt + index % nt], here & (bit == 1)

    def structure(self) -> Bool[Array, " n"]:
        """(n,) bool: which entries are stored."""
        return self.lookup(jnp.arange(self.shape[0], dtype=jnp.int32))[1]

    def todense(self, fill: Number = 0) -> Shaped[Array, " n"]:
        """A dense (n,) array; missing entries become `fill`, which the dtype must hold."""
        values, stored = self.lookup(jnp.arange(self.shape[0], dtype=jnp.int32))
        return jnp.where(stored, values, fitting("fill", fill, self.dtype))

    def to_sparse(self, nse: int | None = None) -> SparseVector:
        """The same entries as a `SparseVector` of capacity `nse` (the length by default)."""
        values, stored = self.lookup(jnp.arange(self.shape[0], dtype=jnp.int32))
        y = from_present(values, stored, nse)
        return SparseVector(y.data, y.indices, y.count, y.overflow | self.overflow, y.shape)

    def __repr__(self) -> str:
        return f"TiledVector({describe(self.x_tile)}, shape={self.shape}, nt={self.nt})"


@pytree_dataclass
class BitVector(NoValue):
    """A set of places below n, one bit each: `words[j // 32] >> (j % 32) & 1`.

    Attributes:
        words: (ceil(n / 64) * 2,) uint32, whole tiles of 64 places; bits from n on are 0.
        shape: (n,), static.

    >>> import jax.numpy as jnp
    >>> BitVector.from_bool(jnp.array([True, False, True])).words.tolist()
    [5, 0]
    """

    words: UInt[Array, " words"]
    shape: tuple[int] = static()

    @property
    def count(self) -> Int[Array, ""]:
        """The number of places in the set, int32."""
        return jnp.sum(lax.population_count(self.words), dtype=jnp.uint32).astype(jnp.int32)

    def check_invariants(self) -> BitVector:
        """This object, if no bit is set from place n on.

        Raises:
            ValueError: one is, or the words are traced or of another length.
        """
        return check(self, ("words",), of_bits)

    @classmethod
    def from_indices(cls, indices: Int[Array, " k"], n: int) -> BitVector:
        """The set of the given places; those out of [0, n) are left out."""
        place = within(indices, n)
        return cls.from_bool(jnp.zeros(n, bool).at[place].set(True, mode="drop"))

    @classmethod
    def from_sparse(cls, x: SparseVector) -> BitVector:
        """The structure of a sparse vector."""
        return cls.from_bool(x.structure())

    @classmethod
    def from_bool(cls, flags: Bool[Array, " n"]) -> BitVector:
        """The places of True of a (n,) array."""
        (n,) = flags.shape
        spread = jnp.pad(flags, (0, -n % 64)).reshape(-1, 32).astype(jnp.uint32)
        shift = jnp.arange(32, dtype=jnp.uint32)
        return cls(jnp.sum(spread << shift[None], axis=1, dtype=jnp.uint32), (n,))

    def todense(self) -> Bool[Array, " n"]:
        """(n,) bool."""
        shift = jnp.arange(32, dtype=jnp.uint32)
        return ((self.words[:, None] >> shift) & 1).reshape(-1)[: self.shape[0]] == 1

    def to_sparse(self, nse: int | None = None) -> SparseVector:
        """A `SparseVector` of True of capacity `nse` (the length by default)."""
        if nse is None and is_concrete(self.words):
            nse = int(self.count)
        flags = self.todense()
        return from_present(flags, flags, nse)

    def __repr__(self) -> str:
        return f"BitVector({describe(self.words)}, shape={self.shape})"
