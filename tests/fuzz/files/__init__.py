"""Files: generated ones with an oracle, and mutated ones that must be read or refused."""

from ..cases import Case, Fuzzer
from . import generated, mutated

BATCH = 200  # files of a case

SUFFIXES = {
    "names": (".csv", ".tsv.gz"),
    "first lines": (".csv",),
    "numbers": (".csv", ".mtx", ".mtx.gz"),
    "dtypes": (".csv", ".mtx", ".npz"),
    "complex": (".csv", ".mtx", ".npz"),
    "mutated": (".csv", ".mtx", ".mtx.gz", ".npz"),
}


def possible(case: Case) -> bool:
    """Whether there are such files; the command line is for mutated ones."""
    read = case["way"] == "reader" or case["what"] == "mutated"
    return read and case["suffix"] in SUFFIXES[case["what"]]


def run(case: Case) -> tuple[str, ...]:
    """Raises where a file is not read for what it is."""
    return mutated.run(case) if case["what"] == "mutated" else generated.run(case)


FUZZER = Fuzzer(
    {
        "what": tuple(SUFFIXES),
        "suffix": (".csv", ".tsv.gz", ".mtx", ".mtx.gz", ".npz"),
        "way": ("reader", "info", "convert", "bfs", "pagerank"),
        "files": (BATCH,),
    },
    run,
    draws=lambda case: 1,
    programs=BATCH,
    possible=possible,
)
