"""A kernel that gave up becomes an error where values can be looked at."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ..._core.compilation import is_eager, on_gpu

_R = TypeVar("_R", bound=tuple)


def finished(result: _R, algorithm: str) -> _R:
    """`result`; eager results of a GPU whose `status` is not 0 raise.

    Raises:
        RuntimeError: not all thread blocks of a kernel arrived at a barrier in time.
    """
    status: Any = result.status  # pyright: ignore[reportAttributeAccessIssue]
    if is_eager(status) and on_gpu(status) and np.any(np.asarray(status)):
        raise RuntimeError(
            f"{algorithm}: the kernel gave up waiting for its thread blocks at a grid barrier; "
            "another program may hold the GPU. Try again, or with backend='xla'."
        )
    return result
