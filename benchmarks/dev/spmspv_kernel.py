"""Settings of the column kernel compared: `python -m benchmarks.dev.spmspv_kernel --settings ...`.

A setting is a comma-separated list of MODULE.NAME=VALUE of the kernels' modules, as
`spmspv.FEW=0,_flatten.LONG=2048`, or `-` for what is set. For each matrix, density and setting:
the kernel's least and median time and the median from one product's start to the next's, by a
profile of chains of products; every result is compared with that of the first setting.
"""

from __future__ import annotations

import argparse
import functools
import importlib

import jax
import numpy as np

import jaxspv as jsp

from .. import tile_suite
from ..harness import _wake
from ..products.tiles import DENSITIES, _chain
from ..timeline import timeline

LENGTH = 16


def change(setting: str) -> list[tuple[object, str, int]]:
    """Makes the changes a setting names; what was there before."""
    before = []
    for part in setting.split(",") if setting != "-" else ():
        name, value = part.split("=")
        module_name, name = name.split(".")
        module = importlib.import_module(f"pallas_kernels.{module_name}")
        before.append((module, name, getattr(module, name)))
        setattr(module, name, int(value))
    return before


def vectors(n: int) -> dict[float, jsp.SparseVector]:
    """density -> x, as `products.tiles` draws them."""
    rng, found = np.random.default_rng(1), {}
    for density in DENSITIES:
        count = max(1, round(density * n))
        places = np.sort(rng.choice(n, count, replace=False)).astype(np.int32)
        values = rng.random(count, np.float32)
        found[density] = jsp.vector_from_entries(places, values, n, nse=max(1, round(0.1 * n)))
    return found


def measure(A: jsp.CSC, x: jsp.SparseVector, program) -> tuple[jsp.SparseVector, str]:
    """The product, and its times in microseconds."""
    call = functools.partial(program, A, x)
    y = jax.block_until_ready(call())
    _wake([lambda: jax.block_until_ready(call())])
    events = timeline(lambda: [jax.block_until_ready(call()) for _ in range(3)])
    mine = [(at, took) for name, at, took in events if "spmspv_push" in name.lower()]
    if not mine:
        return y, "no kernel"
    took, steps = [t for _, t in mine], np.diff([at for at, _ in mine])
    return y, f"{min(took):7.2f} {np.median(took):7.2f} {np.median(steps):7.2f}"


def main() -> None:
    """Prints a line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["fem-263-6"])
    parser.add_argument("--densities", nargs="+", type=float, default=[1e-3, 1e-4])
    parser.add_argument("--settings", nargs="+", default=["-"])
    options = parser.parse_args()
    for graph in options.graphs:
        A = jax.block_until_ready(tile_suite.NAMES[graph].build()).T
        xs, first = vectors(A.shape[0]), {}
        for setting in options.settings:
            before = change(setting)
            jax.clear_caches()
            program = _chain(functools.partial(jsp.spmspv, method="scatter"), LENGTH, False)
            for density in options.densities:
                y, times = measure(A, xs[density], program)
                want = first.setdefault(density, y)
                np.testing.assert_array_equal(y.indices, want.indices)
                np.testing.assert_allclose(y.todense(), want.todense(), rtol=1e-4)
                print(f"{graph:14s} {density:<7g} {times}  {setting}", flush=True)
            for module, name, value in before:
                setattr(module, name, value)


if __name__ == "__main__":
    main()
