"""The plan of a sparse product: its method, the capacity of its result, the size of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...._core.eager.arrays import is_eager, known_while_tracing, on_accelerator, on_gpu
from ...._core.eager.kept import kept
from ...._core.eager.programs import one_program
from ...._core.indices import bucketed, eager_capacity
from ...._core.platforms import Backend, situation
from ...._core.pytree import is_concrete
from ...._core.reductions import exact_sum
from ....algebra.masks import Mask
from ....algebra.semirings import plus_pair
from ....formats import SparseMatrix
from ....formats.base import entries_on_host
from ....formats.csr import sorted_csr
from .call import Call, lists_places, sorted_mask
from .cpu import counted, no_pattern
from .methods import no_cells, no_dots, op

if TYPE_CHECKING:
    from pallas_kernels.spgemm.api import Rows


def count_on_host(A: SparseMatrix, B: SparseMatrix) -> int:
    """The products, where reading the arrays costs nothing and no program need be compiled."""
    return int(_lengths(A, 1) @ _lengths(B, 0))


def searches_on_host(A: SparseMatrix, B: SparseMatrix, mask: Mask) -> int:
    """The entries of the shorter list of each place of the mask."""
    row, col = _places(mask.source)
    return int(np.minimum(_lengths(A, 0)[row], _lengths(B, 1)[col]).sum())


def count_on_device(A: SparseMatrix, B: SparseMatrix, mask: Mask | None) -> tuple[int, int | None]:
    """The number of products and, with a mask, that of searches: one program, one sync."""
    with known_while_tracing():
        return jax.tree.map(int, jax.device_get(_count(A, B, mask)))


def _places(A: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries, on the host."""
    row, col, *_ = map(np.asarray, A.rowcol()) if A.compressed is None else entries_on_host(A)
    valid = row < A.shape[0]
    return row[valid], col[valid]


def _lengths(A: Any, axis: int) -> np.ndarray:
    """The number of entries of each row (axis 0) or column (axis 1), on the host."""
    if A.compressed == axis:
        return np.diff(np.asarray(A.indptr).astype(np.int64))
    return np.bincount(_places(A)[axis], minlength=A.shape[axis])


@jax.jit
def _count(A: SparseMatrix, B: SparseMatrix, mask: Mask | None) -> Any:
    """What `count_on_host` and `searches_on_host` count."""
    row, col = A.rowcol()
    b = _lengths_of_rows(B)
    products = exact_sum(jnp.where(row < A.shape[0], jnp.take(b, col, mode="clip"), 0))
    if mask is None:
        return products, None
    row, col = mask.source.rowcol()
    each = _lengths_of_rows(A).at[row].get(mode="fill", fill_value=0)
    other = _lengths_of_rows(B.T).at[col].get(mode="clip")
    return products, exact_sum(jnp.minimum(each, other))


def _lengths_of_rows(A: Any) -> jax.Array:
    if A.compressed == 0:
        return jnp.diff(A.indptr)
    return jnp.zeros(A.shape[0], jnp.int32).at[A.rowcol()[0]].add(1, mode="drop")


FEW = 1 << 22  # up to so many products a CPU does not look for a method with less work
CHUNK = 1 << 26  # products expanded together: about 4 GB
LEAST, MOST_EXPANDED = 1 << 10, 1 << 24  # the same where their number is not known
UNASKED = 1 << 27  # the largest default capacity of a result under jit
MOST = (1 << 31) - 2  # the largest capacity
TOO_MANY = 2**31 - 1  # stands for any larger number of entries
LIKELY = 8  # first capacity of C, in multiples of the entries of A and B
SMALL = 1 << 15  # capacity up to which native loops compute a result before its size is known


def methods() -> tuple[str, ...]:
    """The names of all methods."""
    return "auto", *dict.fromkeys(impl.name for impl in op.impls)


class Schedule(NamedTuple):
    """The plan of a sparse product.

    Attributes:
        method: None: the first that does not refuse.
        nse: the capacity to compute in: what C needs or more, unless patterns are traced.
        size: products (of "dot": searches) made at a time.
        products: a lower bound on their number; None: not known or not needed.
        found: outside of a jit, for kernels by rows: the rows, computed to learn the size of C.
        entries: of C, if known before it is computed, so that no count is read; else None.
    """

    method: str | None
    nse: int
    size: int
    products: int | None
    found: Rows | None
    entries: int | None = None


def plan(
    call: Call, nse: int | None, method: str | None, chunk: int | None, backend: Backend | None
) -> Schedule:
    """The schedule of a product; values of the patterns count where they are concrete. Raises
    ValueError: `nse` is too small, or missing where it has to be given."""
    if not is_concrete(call.pattern):
        if nse is None and call.bound > UNASKED:
            why = f"{call.bound} is the only safe bound."
            raise ValueError(f"`nse` must be given where patterns are traced: {why}")
        nse = call.bound if nse is None else nse
        size = chunk or min(max(bucketed(2 * nse), LEAST), MOST_EXPANDED)
        return Schedule(method, nse, size, None, None)
    gpu = on_gpu(call.pattern)
    work = _Work(call, gpu)
    kernels = gpu and _kernels_serve(call, backend, work.sizes)
    asked, method = method, method or _fastest(call, work, backend, gpu, kernels)
    loops = method == "gustavson" and not gpu
    of_platform = loops or method == "rows"
    if not is_eager(call.operands):
        products = bucketed(work.products)
        size = chunk or min(products, CHUNK)
        # What is lowered for several platforms has the method of each.
        method = asked if of_platform else method
        if nse is None:
            nse = _capacity(call, _entries_of(call, size, kernels))
        return Schedule(method, nse, size, products, None)
    if method == "rows" and kernels:
        return _rows_first(call, nse, work.sizes)
    known = work.sizes.get("entries")
    bound, size, products = call.bound, 1, None  # loops make one product after the other
    if method == "dot":
        size = chunk or min(bucketed(work.searches or 0), CHUNK)
    elif not loops:
        products = bucketed(work.products)
        size, bound = chunk or min(products, CHUNK), min(bound, products)
    elif known is None and bound > SMALL and not lists_places(call.mask):
        bound = min(bound, work.products)
    if bound <= (SMALL if loops else size) or lists_places(call.mask):
        return Schedule(method, _capacity(call, bound), size, products, None, known)
    if known is None:
        known = work.sizes["entries"] = _entries_of(call, size, kernels)
    return Schedule(method, _checked_capacity(call, nse, known), size, products, None, known)


def remember(call: Call, C: SparseMatrix) -> None:
    """Keeps the size of an eager result on a GPU for the next product of the same patterns."""
    if on_gpu(call.pattern) and is_eager(call.operands, C):
        _sizes_of(call)["entries"] = int(C.count)


class Sizes(dict[Any, Any]):
    """Sizes learnt from earlier products of two patterns: "entries" of C, "products", "searches",
    and which backends' kernels serve. A leaf of JAX's trees, which sort the keys of a dict."""


def _sizes_of(call: Call) -> Sizes:
    """Cached while the arrays live: the same product with other values, as in a loop, needs no
    sync."""
    name = "sizes of a product", jax.tree.structure((call.A, call.B, call.mask))
    return kept(tuple(jax.tree.leaves(call.pattern)), name, Sizes)


def _checked_capacity(call: Call, nse: int | None, need: int) -> int:
    """The capacity of a result of `need` entries. Raises ValueError: `nse` is too small for it."""
    if nse is not None and need > nse:
        raise ValueError(f"`nse` must be at least {need} to hold the result; got {nse}.")
    return _capacity(call, need) if nse is None else nse


def _rows_first(call: Call, nse: int | None, sizes: dict[Any, Any]) -> Schedule:
    """The schedule of kernels by rows, which are made before the size of C is known. Allocates for
    the typical size of a result and computes the rows again if that was too small: two or three
    host syncs, none once the sizes are cached. Rows and assembly stay separate programs, so that
    the second product of a pattern compiles nothing."""
    from .gpu import tuning_for

    known = sizes.get("entries")
    if "tuning" not in sizes:
        sizes["tuning"] = tuning_for(call.A, call.B)
    tuning = sizes["tuning"]
    allocated = min(
        call.bound, bucketed(max(nse or 0, LIKELY * (call.A.nse + call.B.nse), LEAST)), MOST
    )

    def rows_in(allocated: int) -> Rows:
        how = {"allocated": allocated, "tuning": tuning}
        return one_program(_rows_in_capacity, *call.operands, **how)

    rows = rows_in(allocated) if known is None or known <= allocated else None
    need = _held(rows.total) if known is None and rows is not None else known or 0
    sizes["entries"], capacity = need, _checked_capacity(call, nse, need)
    if rows is None or need > allocated:
        rows = rows_in(_capacity(call, need))
    return Schedule("rows", capacity, 1, None, rows, need)


def _capacity(call: Call, entries: int) -> int:
    return min(eager_capacity(entries, call.A.shape[0] * call.B.shape[1]), MOST)


class _Work:
    """Products and searches of a product, counted when first needed, on the host or the device."""

    def __init__(self, call: Call, gpu: bool):
        self.call, self.gpu = call, gpu
        self.dots = no_dots(*call.operands) is None
        self.sizes: dict[Any, Any] = _sizes_of(call)

    def _counted(self, what: str) -> int:
        if what not in self.sizes:
            operands: Any = self.call.without_values
            A, B, mask = operands
            if self.gpu:
                counts = count_on_device(A, B, mask if self.dots else None)
                self.sizes.update(zip(("products", "searches"), counts, strict=True))
            else:
                with known_while_tracing():
                    products = what == "products"
                    found = count_on_host(A, B) if products else searches_on_host(A, B, mask)
                self.sizes[what] = found
        return self.sizes[what]

    @property
    def products(self) -> int:
        return self._counted("products")

    @property
    def searches(self) -> int | None:
        """The number of searches of "dot"; None where it refuses."""
        return self._counted("searches") if self.dots else None


def _is_allowed(kind: Backend, asked: Backend | None) -> bool:
    return kind in (situation().allowed if asked is None else (asked,))


def _kernels_serve(call: Call, backend: Backend | None, sizes: dict[Any, Any]) -> bool:
    """Whether kernels serve the product; cached by pattern, dtypes and semiring."""
    from .gpu import no_kernels

    if not _is_allowed("pallas", backend) or jax.tree.leaves(call.semiring):
        return False
    name = "kernels", call.semiring, call.A.dtype, call.B.dtype
    if name not in sizes:
        sizes[name] = no_kernels(*call.operands) is None
    return sizes[name]


def _fastest(call: Call, work: _Work, backend: Backend | None, gpu: bool, kernels: bool) -> str:
    """A search costs as much as a product for kernels, and about as two where products are sorted;
    on a CPU as about thirty, which it marks and adds."""
    usual, ratio = ("rows", 1) if kernels else ("sort", 0.5)
    one = jax.sharding.get_abstract_mesh().size <= 1  # device, also where a mesh was set
    on_cpu = one and not gpu and not on_accelerator(*jax.tree.leaves(call.pattern))
    if on_cpu and _is_allowed("cpu", backend) and no_pattern(call.A, call.B, call.mask) is None:
        usual, ratio = "gustavson", 30
    if kernels and not work.dots:
        return usual
    most = call.A.nse * min(call.B.nse, call.B.shape[1])
    if not gpu and (most < FEW or not work.dots or work.products < FEW):
        return usual
    cells = call.A.shape[0] * call.B.shape[1]
    if usual == "sort" and cells < work.products and no_cells(*call.operands) is None:
        usual = "dense"
    searches = work.searches
    return "dot" if searches is not None and searches * ratio < work.products else usual


def _entries_of(call: Call, size: int, kernels: bool) -> int:
    """The entries of C; raises as `_held`."""
    A, B, mask = call.without_values
    with known_while_tracing():
        if kernels:
            return _held(_rows_in_capacity(plus_pair, A, B, mask, allocated=0).total)
        return _held(counted(A, B, mask, size=size))


def _held(total: Any) -> int:
    """A number of entries; ValueError where int32 does not hold it."""
    if (need := int(total)) == TOO_MANY:
        raise ValueError("the product has 2^31 entries or more, which int32 indices cannot hold.")
    return need


def _rows_in_capacity(semiring, A, B, mask, *, allocated, tuning=None):
    from .gpu import rows_of

    matrices = sorted_csr(A), sorted_csr(B), sorted_mask(mask)
    return rows_of(semiring, *matrices, nse=allocated, tuning=tuning)
