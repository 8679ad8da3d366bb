"""What a search of a sharded graph should cost: bytes, exchanges, memory; a prediction, no run.

`python -m benchmarks sharded` prints the table for some graphs and numbers of GPUs. The model:

    time = call + rounds (step + bytes / bandwidth) + imbalance (rounds n vertex + nse entry) / P

with P = R C devices in R rows and C columns of blocks, n vertices and nse entries, n / P of them
a device. In a level a device gathers n / P bits from each of C (where C > 1), sends n / P bits to
each of R (where R > 1) and takes part in one sum: what `jaxspv/algorithms/bfs/mesh.py` does; a step
holds two exchanges, of which each further one takes a hop, and each hop of a network as much more
as it is longer. PageRank looks at all entries in every round. The constants of the calls come from
runs on two GPUs (`benchmarks.dev.sharded`, which prints this model beside what it measures).
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
        hop: seconds of one more exchange of few bytes in a step.
        bandwidth: bytes a second that a device sends while it receives as many.
        source: where the numbers are from.
    """

    hop: float
    bandwidth: float
    source: str


# Two H200 of one host: `lax.while_loop` with one `all_gather`, 41 us a step, without one 17;
# `ppermute` of 512 MiB, 282 GB/s each way.
HOST = Link(24e-6, 282e9, "measured on two H200")
# Nothing was measured over a network: 400 Gb/s a GPU, 20 us more an exchange.
NETWORK = Link(44e-6, 50e9, "assumed")


@dataclasses.dataclass(frozen=True)
class Rates:
    """What a call takes in one of its forms, in seconds; fitted to runs on two H200.

    Attributes:
        call: before anything is done.
        step: of a round, two exchanges included.
        vertex, entry: of each vertex in a round and of each entry, on one device.
    """

    call: float
    step: float
    vertex: float
    entry: float


RATES = {
    ("xla", "bfs"): Rates(1e-4, 2.37e-4, 5.2e-10, 4.4e-11),
    ("xla", "pagerank"): Rates(1e-4, 1e-5, 1e-11, 6.1e-11),
    ("kernels", "bfs"): Rates(4.2e-4, 9.2e-6, 6.2e-12, 0.0),
    ("kernels", "pagerank"): Rates(5e-4, 1e-5, 1e-11, 5.4e-12),
}
EVERY_ROUND = {"pagerank"}  # looks at all entries in each
PULLED = 6  # levels that look at all vertices, at most, where the others take queues
BEFORE = {("kernels", "pagerank"): 1}  # rounds' worth of work before the first

GPUS_OF_A_HOST = 8
MEMORY = 141e9  # of an H200
MOST_ENTRIES = 2**31 - 1  # of a device
IMBALANCE = 1.01  # the fullest device over the mean, as vertices are dealt


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


# rmat<scale>-<edges a vertex>: as `shard_rmat` draws it; levels as searches of these take.
CASES = (
    Case("rmat21-22", 2**21, 86_316_028, 5),
    Case("rmat24-22", 2**24, 710_970_834, 6),
    Case("grid 1000 x 1000", 10**6, 3_996_000, 1_999),
    Case("rmat25-44", 2**25, 2_814_206_558, 6),
    Case("2^30 vertices, 64 a vertex", 2**30, 2**36, 9),
    Case("10^12 entries", 2**31 - 2, 10**12, 9),
)


def bytes_of_level(n: int, R: int, C: int) -> float:
    """That a device receives in a level of a search: the bits of others' vertices."""
    piece = n / (R * C) / 8
    return (C - 1) * piece + (R - 1) * piece


def bytes_of_pull(n: int, R: int, C: int) -> float:
    """That a device receives in a level that is pulled, in a symmetric graph: as when it is pushed,
    and the bits of who has no level yet."""
    return bytes_of_level(n, R, C) + (C - 1) * n / (R * C) / 8


def exchanges_of_level(R: int, C: int) -> int:
    """Collectives of a level: a gather, an all-to-all, a sum; none on one device."""
    return 0 if R * C == 1 else (C > 1) + (R > 1) + 1


def memory_of_device(n: int, entries: int, R: int, C: int, value_bytes: int = 4) -> float:
    """Bytes of a device: its entries with values, offsets of its rows, levels, the vertices at all
    places, the places of all vertices, and one result (n,) of 4 bytes, whole on every device."""
    P = R * C
    return entries / P * (4 + value_bytes) + 4 * n / R + 8 * n / P + 12 * n


def grid(devices: int) -> tuple[int, int]:
    """The squarest (R, C), R at most C."""
    R = next(k for k in range(math.isqrt(devices), 0, -1) if devices % k == 0)
    return R, devices // R


def link_of(devices: int) -> Link:
    """Within a host its links; beyond it the network, the slowest on the way."""
    return HOST if devices <= GPUS_OF_A_HOST else NETWORK


def work(call: str, n: int, entries: int, rounds: int, P: int, form: str = "xla") -> float:
    """Seconds of what P devices share."""
    rate = RATES[form, call]
    rounds += BEFORE.get((form, call), 0)
    passes = rounds if call in EVERY_ROUND else 1
    wide = min(rounds, PULLED) if (form, call) == ("kernels", "bfs") else rounds
    return IMBALANCE * (wide * n * rate.vertex + passes * entries * rate.entry) / P


def telling(
    call: str, n: int, entries: int, rounds: int, R: int, C: int, form: str = "xla"
) -> float:
    """Seconds of what they do together: the call, and in each round a step and its exchanges."""
    rate, link = RATES[form, call], link_of(R * C)
    step = rate.step
    if form == "xla":
        exchanges = exchanges_of_level(R, C)
        step += (exchanges - 2) * link.hop + 2 * (link.hop - HOST.hop)
    sent = bytes_of_level(n, R, C)
    if call != "bfs":
        sent *= 32  # numbers, not bits
    return rate.call + rounds * (step + sent / link.bandwidth)


def predicted(
    call: str, n: int, entries: int, rounds: int | None, devices: int
) -> dict[str, float]:
    """form_model_ms of a call on whole rows, for the forms and calls that are modelled."""
    found = {}
    for form, name in RATES:
        if name == call and rounds is not None:
            size = n, entries, rounds
            seconds = work(call, *size, devices, form) + telling(call, *size, devices, 1, form)
            found[f"{form}_model_ms"] = 1e3 * seconds
    return found


def rows(devices: Sequence[int]) -> list[list[object]]:
    """The table: a row for each graph, number of devices and partition that fits."""
    found: list[list[object]] = []
    for case in CASES:
        size = case.n, case.entries, case.levels
        for P in devices:
            for R, C in dict.fromkeys([(P, 1), grid(P)] if P > 2 else [(P, 1)]):
                need = memory_of_device(case.n, case.entries, R, C)
                if need > MEMORY or IMBALANCE * case.entries / P >= MOST_ENTRIES:
                    continue
                together = None
                if 1 < P <= GPUS_OF_A_HOST and C == 1:
                    ways = work("bfs", *size, P, "kernels"), telling("bfs", *size, R, C, "kernels")
                    together = 1e3 * sum(ways)
                found.append(
                    [case.name, f"{R} x {C}", bytes_of_level(case.n, R, C) / 1e6, need / 1e9]
                    + [1e3 * work("bfs", *size, P), 1e3 * telling("bfs", *size, R, C), together]
                )
    return found


HEADERS = (
    *("graph", "R x C", "MB a level", "GB a device"),
    *("work, ms", "steps, ms", "in one launch, ms"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table and what its constants are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sharded", description=__doc__)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 8, 64, 1024])
    args = parser.parse_args(argv)
    print(markdown(HEADERS, rows(args.devices)))
    print("\nPredicted, not measured; what fits an H200 and int32 alone. Constants:")
    for name, link in (("host", HOST), ("network", NETWORK)):
        print(
            f"- {name}: {link.hop * 1e6:.1f} us an exchange, {link.bandwidth / 1e9:.0f} GB/s "
            f"({link.source})"
        )
    for (form, call), rate in RATES.items():
        print(
            f"- {call}, {form}: {rate.call * 1e3:.2f} ms a call, {rate.step * 1e6:.1f} us a step, "
            f"{rate.vertex * 1e12:.0f} ps a vertex, {rate.entry * 1e12:.1f} ps an entry "
            "(measured on two H200)"
        )
    return 0
