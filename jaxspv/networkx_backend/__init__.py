"""The NetworkX backend `jaxspv`: NetworkX calls on jaxspv's algorithms, by NetworkX's dispatcher.

`backend` has the functions. `_nx_jaxspv` in this folder is also a top-level module of the wheel,
which NetworkX loads and which must not import JAX.
"""

import types

from . import functions as functions
from .graph import convert_from_nx as convert_from_nx
from .graph import convert_to_nx as convert_to_nx
from .info import can_run, should_run
from .registry import FUNCTIONS
from .testing import on_start_tests

backend = types.SimpleNamespace(
    **FUNCTIONS,
    convert_from_nx=convert_from_nx,
    convert_to_nx=convert_to_nx,
    can_run=can_run,
    should_run=should_run,
    on_start_tests=on_start_tests,
)
