"""What every traversal is given: how it is launched, sizes of the graph."""

import dataclasses
from typing import Any

from ..simt.device import Extent, Grid


@dataclasses.dataclass(frozen=True)
class Spread:
    """How a traversal is spread over the GPU: base of the configurations."""

    ctas: int = 0  # 0: as many as are resident
    threads: int = 1024
    interpret: bool = False  # on the host, over NumPy arrays

    def form(self) -> Extent:
        """Arguments of `launch`."""
        return Grid(self.ctas, self.threads, self.interpret).form()


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of a graph, known while a kernel is traced."""

    n: Any = 0  # an int; in the pull of a mesh, a value
    targets: int = 0
    quads: int = 0  # low_degree: of a row
    linked: bool = False  # low_degree: rows may continue elsewhere
