"""Which kernels a gradient of SpMV or SSSP spends its time in: a profile on a GPU.

`python -m benchmarks.dev.gradient_kernels grid2000 --only "prepared, gradient by both"`
`python -m benchmarks.dev.gradient_kernels rmat18 --cases sssp`
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import jax

from .. import suite
from ..options import Options
from ..products.gradients import paths, products

ONLY = {"products": "by both", "sssp": "by weights, inside jit"}


def main() -> None:
    """Prints microseconds and launches a step of every kernel, longest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--cases", choices=list(ONLY), default="products")
    parser.add_argument("--only", help="programs whose name holds this")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--kernels", type=int, default=14)
    args = parser.parse_args()
    for name in args.graphs:
        workload, options = suite.get(name), Options(repeats=args.repeats)
        if args.cases == "sssp":
            found, _ = paths(workload, options)
        else:
            found, _ = products(workload.matrix(), options)
        for candidate in found:
            if (args.only or ONLY[args.cases]) not in candidate.name:
                continue
            candidate.call()
            print(f"{name}: {candidate.name}")
            for kernel, (count, us) in list(kernels(candidate.call).items())[: args.kernels]:
                print(f"  {us / args.repeats:8.2f} us  {count / args.repeats:5.2f} x {kernel[:90]}")


def kernels(call: Callable[[], Any]) -> dict[str, tuple[int, float]]:
    """{kernel: (launches, microseconds)} of one call on a GPU, longest first; empty elsewhere."""
    total: dict[str, tuple[int, float]] = collections.defaultdict(lambda: (0, 0.0))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            call()
        (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
        profile = jax.profiler.ProfileData.from_file(str(path))
        for plane in profile.planes:
            if not plane.name.startswith("/device:GPU"):
                continue
            for line in plane.lines:
                if not line.name.startswith("Stream"):
                    continue
                for event in line.events:
                    count, us = total[event.name]
                    total[event.name] = count + 1, us + event.duration_ns / 1e3
    return dict(sorted(total.items(), key=lambda item: -item[1][1]))


if __name__ == "__main__":
    main()
