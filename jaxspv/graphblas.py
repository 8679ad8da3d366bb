"""Functions of the GraphBLAS C API that imitate changes: they return new objects."""

from .ops.assign import subassign as subassign
from .ops.elements import get_element as get_element
from .ops.elements import has_element as has_element
from .ops.elements import remove_element as remove_element
from .ops.elements import set_element as set_element
from .ops.structure import build as build
from .ops.structure import dup as dup
from .ops.structure import resize as resize
