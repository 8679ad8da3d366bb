"""The GPU that a trace is for: how many CTAs are resident on it, and their shared memory.

A kernel's grid is fixed while it is traced, where the device that will run the program is not known
for certain. `target()` takes, in this order,

1. the device of the abstract mesh in context: set with `jax.set_mesh`, or with an `AbstractMesh`
   that names an `AbstractDevice` to compile for a machine that is not present;
2. the NVIDIA GPUs of this process: the minimum of each of their numbers, so that a program traced
   once is right on all of them. `core_count` of a MIG slice is that of the slice;
3. nothing: the numbers of the smallest slice of a GPU of compute capability 8.0. Such a program is
   right on every GPU that kernels serve, and slow on a large one: name the device as in 1.

So a grid never has more CTAs than are resident where the program was meant to run. On a smaller
device (an exported program taken there) a grid barrier expires and the result says so.
"""

import contextlib
import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple, TypedDict

import jax

CTAS_PER_CORE = 1  # of up to 1024 threads and 64 registers each: resident everywhere from 8.0 on
# The lowest that works: acquire and release at GPU scope, no_allocate, 1024 threads.
CAPABILITY = 8, 0
SHARED_BYTES = 99 * 1024  # the fewest that work: what a CTA has on the GPUs of 8.6, 8.9 and 12.0

# kind -> (multiprocessors, compute capability), for devices that are named but not present.
KINDS = {
    "GB200": (148, (10, 0)),
    "B200": (148, (10, 0)),
    "GB300": (148, (10, 3)),
    "B300": (148, (10, 3)),
    "GH200": (132, (9, 0)),
    "H200": (132, (9, 0)),
    "H100 PCIe": (114, (9, 0)),
    "H100": (132, (9, 0)),
    "A100": (108, (8, 0)),
    "A30": (56, (8, 0)),
    "A40": (84, (8, 6)),
    "A10G": (80, (8, 6)),
    "A10": (72, (8, 6)),
    "L40S": (142, (8, 9)),
    "L40": (142, (8, 9)),
    "L4": (58, (8, 9)),
    "RTX A6000": (84, (8, 6)),
    "RTX 6000 Ada": (142, (8, 9)),
    "RTX PRO 6000": (188, (12, 0)),
    "GeForce RTX 3090": (82, (8, 6)),
    "GeForce RTX 4090": (128, (8, 9)),
    "GeForce RTX 5090": (170, (12, 0)),
    "T4": (40, (7, 5)),
    "V100": (80, (7, 0)),
    "P100": (56, (6, 0)),
}
NAMESAKES = re.compile(r"\b(Laptop|Mobile|Max-Q|D)\b")  # have fewer multiprocessors
SLICE = re.compile(r"\bMIG (\d)g\b")
FEWEST_CORES = 14  # of an A100 in seven MIG slices


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU, as far as a launch depends on it; capability is None where it is not known."""

    kind: str
    cores: int
    shared_bytes: int
    capability: tuple[int, int] | None


class Extent(TypedDict):
    """CTAs of a launch, threads of each, and whether it is interpreted on the host."""

    ctas: int
    threads: int
    interpret: bool


class Grid(NamedTuple):
    """How kernels are launched, where `launching` says it.

    ctas: None: as many as suit the device. threads: of a CTA; None: as many as suit the kernel.
    interpret: on the host, over NumPy arrays.
    """

    ctas: int | None = None
    threads: int | None = None
    interpret: bool = False


_grids = [Grid()]


@contextlib.contextmanager
def launching(grid: Grid) -> Iterator[None]:
    """Kernels that are traced inside are launched so: for tests and measurements."""
    _grids.append(grid)
    try:
        yield
    finally:
        _grids.pop()


def grid_now() -> Grid:
    """How kernels that are traced now are launched."""
    return _grids[-1]


def extent(ctas: int | None = None, threads: int = 1024) -> Extent:
    """Arguments of `launch`: those of `launching`, else these; ctas: None: all that are
    resident."""
    grid = grid_now()
    most = resident_ctas() if ctas is None else ctas
    threads = grid.threads or threads
    return {"ctas": grid.ctas or most, "threads": threads, "interpret": grid.interpret}


def target() -> Device:
    """The device that kernels traced now are for."""
    try:
        present = [_present(device) for device in jax.local_devices(backend="cuda")]
    except RuntimeError:  # this process has none
        present = []
    cores, wanted = None, getattr(jax.sharding.get_abstract_mesh(), "abstract_device", None)
    if wanted is not None and wanted.platform == "gpu":
        cores, kind = wanted.num_cores, wanted.device_kind
        present = [device for device in present if device.kind == kind] or [_named(kind)]
    present = present or [_named("an unknown NVIDIA GPU")]
    return Device(
        " and ".join(sorted({device.kind for device in present})),
        cores or min(device.cores for device in present),
        min(device.shared_bytes for device in present),
        min((device.capability for device in present if device.capability), default=None),
    )


def resident_ctas() -> int:
    """CTAs of up to 1024 threads that are resident together on the target."""
    return target().cores * CTAS_PER_CORE


def most_ctas(wanted: float, threads: int, waves: int) -> int:
    """At most `wanted` CTAs, at most `waves` times as many as are resident; at least one."""
    return int(max(1, min(wanted, resident_ctas() * (2048 // threads) * waves)))


def refused() -> str | None:
    """Why kernels do not run on the target; None where they do, or where none is known."""
    device = target()
    if device.capability is not None and device.capability < CAPABILITY:
        has, needs = (".".join(map(str, v)) for v in (device.capability, CAPABILITY))
        return f"its kernels need compute capability {needs}, and {device.kind} has {has}"
    if device.shared_bytes < SHARED_BYTES:
        return (
            f"its kernels need {SHARED_BYTES} bytes of shared memory in a CTA, and {device.kind} "
            f"has {device.shared_bytes}"
        )
    return None


def capability_of(device) -> tuple[int, int] | None:
    """The compute capability of a device of JAX; None where it says none."""
    version = getattr(device, "compute_capability", None)
    if not version:
        return None
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _present(device) -> Device:
    """The properties of a GPU as the driver reports them, completed by its kind."""
    named = _named(device.device_kind, capability_of(device))
    said = {"cores": "core_count", "shared_bytes": "shared_memory_per_block_optin"}
    said = {field: getattr(device, name, None) for field, name in said.items()}
    return dataclasses.replace(named, **{field: x for field, x in said.items() if x})


@functools.cache  # every eager call asks
def _named(kind: str, capability: tuple[int, int] | None = None) -> Device:
    """The properties that follow from the kind of a device; multiprocessors at most as it has."""
    names = [name for name in KINDS if re.search(rf"\b{name}\b", kind)]
    cores, version = KINDS[max(names, key=len)] if names else (FEWEST_CORES, None)
    if sliced := SLICE.search(kind):
        cores = FEWEST_CORES * int(sliced[1])
    elif NAMESAKES.search(kind):
        cores = FEWEST_CORES
    capability = capability or version
    return Device(kind, cores, _shared_bytes(capability), capability)


def _shared_bytes(capability) -> int:
    """The most that a CTA can have: CUDA C++ Programming Guide, "Compute Capabilities"."""
    if capability in ((8, 0), (8, 7)):
        return 163 * 1024
    return 227 * 1024 if capability and (9, 0) <= capability < (12, 0) else SHARED_BYTES
