"""GraphBLAS for JAX: sparse matrices and vectors as pytrees, algebra over any semiring."""

from . import monoids as monoids
from . import operators as operators
from . import semirings as semirings
from .formats import COO as COO
from .formats import CSC as CSC
from .formats import CSR as CSR
from .masks import Mask as Mask
from .masks import structure as structure
from .monoids import Monoid as Monoid
from .monoids import monoid as monoid
from .operators import BinaryOp as BinaryOp
from .operators import UnaryOp as UnaryOp
from .ops.mxv import mxv as mxv
from .ops.mxv import spmspv as spmspv
from .ops.mxv import spmv as spmv
from .ops.mxv import vxm as vxm
from .semirings import Semiring as Semiring
from .semirings import semiring as semiring
from .vectors import SparseVector as SparseVector
from .vectors import vector_from_dense as vector_from_dense
from .vectors import vector_from_entries as vector_from_entries
