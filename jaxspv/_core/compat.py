"""Known defects of installed jaxlib releases, and what to do about them."""

import functools
import itertools
import warnings

import jax
import jaxlib
import numpy as np

from pallas_kernels.simt import device

# float32 scatter-add on NVIDIA GPUs falls back to a compare-and-swap loop (jax issue 38806).
SLOW_SCATTER_ADD = ((0, 10, 2), (0, 11, 0))

# The kernels of `pallas_kernels` are tested on GPUs from this release of JAX on.
KERNELS_FROM = (0, 11, 1)

LARGE_LOOPS_FROM = (0, 12)  # jaxlib: see `large_loops_are_native`


class EfficiencyWarning(UserWarning):
    """Something runs right, but slower than it could."""


def version_tuple(text: str) -> tuple[int, ...]:
    """`"0.11.2.dev1"` -> `(0, 11, 2)`."""
    return tuple(map(int, itertools.takewhile(str.isdigit, text.split(".")[:3])))


@functools.cache
def jaxlib_version() -> tuple[int, ...]:
    """The installed jaxlib's version."""
    return version_tuple(jaxlib.__version__)


@functools.cache
def jax_version() -> tuple[int, ...]:
    """The installed JAX's version."""
    return version_tuple(jax.__version__)


def kernels_refused() -> str | None:
    """Why the kernels of `pallas_kernels` do not run: the installed JAX, or the GPU that is traced
    for (`pallas_kernels.simt.device`); None where they do."""
    if jax_version() < KERNELS_FROM:
        return f"its kernels need JAX {'.'.join(map(str, KERNELS_FROM))} or newer"
    return device.refused()


def large_loops_are_native() -> bool:
    """Whether XLA's CPU compiler makes one function (`native_loops`) of loops of any size, not only
    of those whose body touches less than a kilobyte."""
    return jaxlib_version() >= LARGE_LOOPS_FROM


def scatter_add_is_slow(dtype) -> bool:
    """True where scatter-add of this dtype on a GPU must be avoided with the installed jaxlib."""
    low, high = SLOW_SCATTER_ADD
    if np.dtype(dtype) != np.float32 or not low <= jaxlib_version() <= high:
        return False
    _warn_once()
    return True


@functools.cache
def _warn_once() -> None:
    if jax.default_backend() == "gpu":
        version = ".".join(map(str, jaxlib_version()))
        warnings.warn(
            f"jaxlib {version} has a float32 scatter-add that is 100 to 2000 times slower than it "
            "should be on GPUs; jaxspv takes a segmented scan instead. Install jaxlib >= 0.11.1.",
            EfficiencyWarning,
            stacklevel=4,
        )
