"""How a matrix is stored: one file per format."""

from ._base import FORMATS as FORMATS
from ._base import STRUCTURES as STRUCTURES
from ._base import SparseMatrix as SparseMatrix
from .bit_tiled import BitTiled as BitTiled
from .coo import COO as COO
from .coo import sort_coo as sort_coo
from .csr import CSC as CSC
from .csr import CSR as CSR
from .tiled import Tiled as Tiled
