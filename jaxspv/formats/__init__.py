"""How a matrix is stored: one file per format."""

from .base import FORMATS as FORMATS
from .base import STRUCTURES as STRUCTURES
from .base import SparseMatrix as SparseMatrix
from .coo import COO as COO
from .coo import sort_coo as sort_coo
from .csr import CSC as CSC
from .csr import CSR as CSR
from .ell import ELL as ELL
from .sell import SELL as SELL
from .tiled.bit_tiled import BitTiled as BitTiled
from .tiled.tiled import Tiled as Tiled
