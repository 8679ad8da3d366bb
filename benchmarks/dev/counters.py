"""Tables of hardware counters: python -m benchmarks.dev.counters NCU.csv, as `one_of_each` says."""

import csv
import pathlib
import sys

from ..report.table import markdown

METRICS = {
    "gpu__time_duration.sum": ("us", 1e-3),
    "launch__registers_per_thread": ("registers", 1),
    "smsp__inst_executed.sum": ("M instructions of warps", 1e-6),
    "smsp__issue_active.avg.pct_of_peak_sustained_active": ("issue slots used %", 1),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("warps active %", 1),
    "l1tex__t_sector_hit_rate.pct": ("L1 hits %", 1),
    "lts__t_sectors_op_read.sum": ("M sectors read from L2", 1e-6),
    "lts__t_sectors_op_atom.sum": ("M atomics at L2", 1e-6),
    "lts__t_sector_hit_rate.pct": ("L2 hits %", 1),
    "dram__bytes_read.sum": ("MB read", 1e-6),
    "dram__bytes_write.sum": ("MB written", 1e-6),
}


def read(path):
    """Rows (name of the kernel, values by metric), a launch each, in order."""
    lines = pathlib.Path(path).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    launches = {}
    for row in csv.DictReader(lines[start:]):
        name = row["Kernel Name"].removesuffix("_kernel").removesuffix("_mosaic_gpu")
        values = launches.setdefault(row["ID"], (name, {}))[1]
        values[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    return list(launches.values())


def main(path):
    """Prints the table."""
    rows = [
        [name, *(values[m] * scale if m in values else None for m, (_, scale) in METRICS.items())]
        for name, values in read(path)
    ]
    print(markdown(["kernel", *(title for title, _ in METRICS.values())], rows))


if __name__ == "__main__":
    main(sys.argv[1])
