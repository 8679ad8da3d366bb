"""What a search of a sharded graph should cost: bytes, exchanges, memory; a prediction, no run.

`python -m benchmarks sharded` prints the table for some graphs and numbers of GPUs. The model:

    time = levels (step + more exchanges hop + bytes / bandwidth) + imbalance entries / (P rate)

with P = R C devices in R rows and C columns of blocks, n vertices, n / P of them a device. In a
level a device gathers n / P bits from each of C (where C > 1), sends n / P bits to each of R (where
R > 1) and takes part in one sum: what `jaxspv/sharding/bfs.py` does. Every entry is looked at once.
A level whose frontier has few edges is told by lists of at most half as many bytes, as are those of
deep graphs. Where a message takes less time than the exchange waits, lists save work alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence

from ..report.table import markdown


@dataclasses.dataclass(frozen=True)
class Link:
    """What connects the devices of a mesh.

    Attributes:
        step: seconds of a step of a loop with one exchange of few bytes.
        hop: seconds of each further exchange of the step.
        bandwidth: bytes a second that a device sends while it receives as many.
        source: where the numbers are from.
    """

    step: float
    hop: float
    bandwidth: float
    source: str


# Two H200 of one host: `lax.while_loop` with one `all_gather`, 41 us a step; `ppermute` of 512 MiB,
# 282 GB/s each way. The further exchange: what such a step takes beyond a loop without one (17 us).
HOST = Link(41e-6, 24e-6, 282e9, "measured on two H200; hop by difference")
# A step of a kernel that holds all levels: 2.7 us with a 4-KiB store to the other GPU.
ONE_LAUNCH = Link(2.7e-6, 1.6e-6, 282e9, "measured on two H200; no traversal is written so yet")
# Nothing was measured over a network: 400 Gb/s a GPU, 20 us more an exchange.
NETWORK = Link(61e-6, 44e-6, 50e9, "assumed")

GPUS_OF_A_HOST = 8
# XLA on one H200: a gather from 2M floats (104 G/s) and a scatter of booleans (35 G/s) an entry.
EDGE_RATE = 1 / (1 / 104e9 + 1 / 35e9)
MEMORY = 141e9  # of an H200
MOST_ENTRIES = 2**31 - 1  # of a device
IMBALANCE = 1.1  # the fullest device over the mean


@dataclasses.dataclass(frozen=True)
class Case:
    """A graph, as far as costs depend on it.

    Attributes:
        name: shown.
        n, entries: vertices and stored entries.
        levels: of a search.
    """

    name: str
    n: int
    entries: int
    levels: int


# rmat: 44 entries a vertex as drawn here, both directions; levels as searches of these take.
CASES = (
    Case("rmat 21", 2**21, 166_900_000, 7),
    Case("rmat 24", 2**24, 1_390_000_000, 8),
    Case("grid 1000 x 1000", 10**6, 3_996_000, 1_999),
    Case("rmat 25", 2**25, 2_814_206_558, 8),
    Case("2^30 vertices, 64 a vertex", 2**30, 2**36, 9),
    Case("10^12 entries", 2**31 - 2, 10**12, 9),
)


def bytes_of_level(n: int, R: int, C: int) -> float:
    """That a device receives in a level of a search: the bits of others' vertices."""
    piece = n / (R * C) / 8
    return (C - 1) * piece + (R - 1) * piece


def list_room(n: int, R: int, C: int) -> int:
    """Edges that leave a frontier up to which it is told by lists; 0: never."""
    places = 32 * max(-(-n // (32 * R * C)), 1)
    room = min(places // 64, 2**13)
    return 0 if room < 32 else 2 ** int(math.log2(room))


def bytes_of_list(n: int, R: int, C: int) -> int:
    """That a device receives in a level told by lists: 4 bytes a place of each."""
    return 4 * list_room(n, R, C) * ((C - 1) + (R - 1))


def bytes_of_pull(n: int, R: int, C: int) -> float:
    """That a device receives in a level that is pulled, in a symmetric graph: as when it is pushed,
    and the bits of who has no level yet."""
    return bytes_of_level(n, R, C) + (C - 1) * n / (R * C) / 8


def exchanges_of_level(R: int, C: int) -> int:
    """Collectives of a level: a gather, an all-to-all, a sum; none on one device."""
    return 0 if R * C == 1 else (C > 1) + (R > 1) + 1


def memory_of_device(n: int, entries: int, R: int, C: int, value_bytes: int = 4) -> float:
    """Bytes of a device: its entries with values, offsets of its rows, levels, the vertices at all
    places, and one result (n,) of 4 bytes, which lies whole on every device."""
    P = R * C
    return entries / P * (4 + value_bytes) + 4 * n / R + 8 * n / P + 8 * n


def grid(devices: int) -> tuple[int, int]:
    """The squarest (R, C), R at most C."""
    R = next(k for k in range(math.isqrt(devices), 0, -1) if devices % k == 0)
    return R, devices // R


def link_of(devices: int, host: Link = HOST) -> Link:
    """Within a host its links; beyond it the network, the slowest on the way."""
    return host if devices <= GPUS_OF_A_HOST else NETWORK


def work(case: Case, devices: int, imbalance: float = IMBALANCE) -> float:
    """Seconds of looking at every entry once. imbalance: the fullest device over the mean."""
    return imbalance * case.entries / (devices * EDGE_RATE)


def telling(case: Case, R: int, C: int, link: Link) -> float:
    """Seconds of the exchanges of a search."""
    exchanges = exchanges_of_level(R, C)
    if exchanges == 0:
        return 0.0
    bits = bytes_of_level(case.n, R, C) / link.bandwidth
    return case.levels * (link.step + (exchanges - 1) * link.hop + bits)


@dataclasses.dataclass(frozen=True)
class Rates:
    """What a call takes on P GPUs of a host, from runs on two; milliseconds.

    call + rounds * step + (rounds * n * vertex + entries * each * entry) / P, `each` the rounds
    where every round looks at all entries (PageRank), else 1.

    Attributes:
        call: before anything is done.
        step: of a round, exchange included.
        vertex, entry: of a vertex in a round, of an entry.
    """

    call: float
    step: float
    vertex: float
    entry: float


RATES = {
    ("xla", "bfs"): Rates(0.1, 0.40, 278e-9, 59.8e-9),
    ("xla", "pagerank"): Rates(0.1, 0.15, 100e-9, 70e-9),
    ("kernels", "bfs"): Rates(0.30, 0.0093, 40e-9, 0.2e-9),
    ("kernels", "pagerank"): Rates(0.30, 0.02, 30e-9, 40e-9),
}
EVERY_ROUND = {"pagerank"}  # looks at all entries in each


def predicted(
    call: str, n: int, entries: int, rounds: int | None, devices: int
) -> dict[str, float]:
    """form_model_ms of a call on GPUs of one host, for the forms that were measured."""
    found = {}
    for (form, name), rate in RATES.items():
        if name == call and rounds is not None:
            each = rounds if name in EVERY_ROUND else 1
            shared = rounds * n * rate.vertex + entries * each * rate.entry
            found[f"{form}_model_ms"] = rate.call + rounds * rate.step + shared / devices
    return found


def rows(devices: Sequence[int]) -> list[list[object]]:
    """The table: a row for each graph, number of devices and partition that fits."""
    found: list[list[object]] = []
    for case in CASES:
        for P in devices:
            for R, C in dict.fromkeys([(P, 1), grid(P)] if P > 2 else [(P, 1)]):
                need = memory_of_device(case.n, case.entries, R, C)
                if need > MEMORY or IMBALANCE * case.entries / P >= MOST_ENTRIES:
                    continue
                one = telling(case, R, C, ONE_LAUNCH) * 1e3 if 1 < P <= GPUS_OF_A_HOST else None
                found.append(
                    [case.name, f"{R} x {C}", bytes_of_level(case.n, R, C) / 1e6]
                    + [bytes_of_list(case.n, R, C) / 1e6, need / 1e9]
                    + [work(case, P) * 1e3, telling(case, R, C, link_of(P)) * 1e3, one]
                )
    return found


HEADERS = (
    *("graph", "R x C", "MB a level", "MB as lists", "GB a device"),
    *("work, ms", "exchanges, ms", "in one launch, ms"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table and what its constants are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sharded", description=__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 8, 64, 1024])
    args = parser.parse_args(argv)
    print(markdown(HEADERS, rows(args.devices)))
    print("\nPredicted, not measured; what fits an H200 and int32 alone. Constants:")
    for name, link in (("host", HOST), ("one launch", ONE_LAUNCH), ("network", NETWORK)):
        print(
            f"- {name}: {link.step * 1e6:.1f} us a step, {link.hop * 1e6:.1f} us a further "
            f"exchange, {link.bandwidth / 1e9:.0f} GB/s ({link.source})"
        )
    print(f"- {EDGE_RATE / 1e9:.0f} G entries a second and device (gather and scatter of XLA)")
    return 0
