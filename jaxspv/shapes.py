"""Names for the dtypes and shapes of arrays in public signatures, in jaxtyping's words.

Annotations are never evaluated, so that at run time every name here is `Any`: jaxtyping is a
dependency of development alone. In a shape n, m, k and nse are extents, `*sources` is () or (k,)
and `*entry` the shape of one entry, () but for matrices of arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from jaxtyping import ArrayLike as ArrayLike
    from jaxtyping import Bool as Bool
    from jaxtyping import Float as Float
    from jaxtyping import Inexact as Inexact
    from jaxtyping import Int as Int
    from jaxtyping import Num as Num
    from jaxtyping import PRNGKeyArray
    from jaxtyping import Shaped as Shaped
    from jaxtyping import UInt as UInt

    from .algebra.masks import Mask
    from .formats import SparseMatrix
    from .formats.stored import Stored
    from .graph import Graph

    Number: TypeAlias = Shaped[ArrayLike, ""]
    Real: TypeAlias = Num[ArrayLike, ""]
    Count: TypeAlias = Int[ArrayLike, ""]
    Key: TypeAlias = PRNGKeyArray
    Sources: TypeAlias = Int[ArrayLike, "*sources"] | Sequence[int]  # a vertex, or several
    Indices: TypeAlias = Int[ArrayLike, " k"] | Sequence[int]
    # Along an axis; None: all of it.
    Places: TypeAlias = Int[ArrayLike, "*k"] | Sequence[int] | slice | None
    Values: TypeAlias = Shaped[ArrayLike, " k *entry"] | Sequence[Any]
    Vector: TypeAlias = Shaped[ArrayLike, " n"] | Sequence[Any]
    DenseMatrix: TypeAlias = Shaped[ArrayLike, "n k"] | Sequence[Any]
    Matrix: TypeAlias = SparseMatrix | Graph
    Sparse: TypeAlias = Stored | Graph
    Operand: TypeAlias = Sparse | Vector
    Allowed: TypeAlias = Mask | Stored | Shaped[ArrayLike, "*shape"] | None
else:

    def __getattr__(name: str) -> Any:
        if not name[:1].isupper():
            raise AttributeError(name)
        return Any
