"""How a matrix is stored: one file per format."""

from ._base import FORMATS as FORMATS
from ._base import SparseMatrix as SparseMatrix
from .coo import COO as COO
from .coo import sort_coo as sort_coo
from .csr import CSC as CSC
from .csr import CSR as CSR
