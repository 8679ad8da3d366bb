"""What `benchmarks/results` holds: one JSON a benchmark and device, merged from runs.

A stored document has `runs` (the environments, with commit and command), `records`, each with the
place of its run in that list, and `failures`.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable
from typing import Any

Record = dict[str, Any]
Document = dict[str, Any]

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
FILES = {"tiles: BFS": "tilebfs"}  # the others by what stands before a colon


def of_run(document: Document) -> Document:
    """A document as `python -m benchmarks --json` writes it, in the stored form."""
    if "runs" in document:
        return document
    records = [r | {"run": 0} for r in document["records"]]
    failures = [f | {"run": 0} for f in document["failures"]]
    return {"runs": [document["environment"]], "records": records, "failures": failures}


def merged(old: Document, new: Document) -> Document:
    """Records of both, those of `new` in place of older ones of the same graph, case and program.

    A failure is forgotten once its graph has records of a later run; so is a run without records.
    """
    new, shift = of_run(new), len(old["runs"])
    later = [r | {"run": r["run"] + shift} for r in new["records"]]
    replaced = set(map(_key, later))
    measured = set(map(_place, later))
    records = [r for r in old["records"] if _key(r) not in replaced] + later
    failures = [f for f in old["failures"] if _place(f) not in measured]
    failures += [f | {"run": f["run"] + shift} for f in new["failures"]]
    runs = old["runs"] + new["runs"]
    used = sorted({r["run"] for r in records + failures})
    place = {run: k for k, run in enumerate(used)}
    renumber = lambda rows: [row | {"run": place[row["run"]]} for row in rows]  # noqa: E731
    return {
        "runs": [runs[k] for k in used],
        "records": sorted(renumber(records), key=lambda r: (r["run"], r["benchmark"])),
        "failures": renumber(failures),
    }


def with_runs(
    documents: Iterable[Document], folder: pathlib.Path = RESULTS
) -> dict[pathlib.Path, Document]:
    """The files of `folder` that runs belong to, merged with them; nothing is written."""
    found: dict[pathlib.Path, Document] = {}
    for document in documents:
        environment = document["environment"]
        device = environment["device"].lower().replace(" ", "-")
        place = folder / ("cpu" if environment["platform"] == "cpu" else device)
        for name in dict.fromkeys(file_of(r["benchmark"]) for r in document["records"]):
            path = place / f"{name}.json"
            if path not in found:
                empty = {"runs": [], "records": [], "failures": []}
                found[path] = load(path) if path.exists() else empty
            part = document | {
                key: [r for r in document[key] if file_of(r["benchmark"]) == name]
                for key in ("records", "failures")
            }
            found[path] = merged(found[path], part)
    return found


def file_of(benchmark: str) -> str:
    """The name of the file that a benchmark's records belong to."""
    return FILES.get(benchmark, benchmark.partition(":")[0])


def load(path: pathlib.Path) -> Document:
    """A document in the stored form."""
    return of_run(json.loads(path.read_text()))


def save(path: pathlib.Path, document: Document) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def all_stored(folder: pathlib.Path = RESULTS) -> dict[pathlib.Path, Document]:
    """Every stored document by its path."""
    return {path: load(path) for path in sorted(folder.glob("*/*.json"))}


def _place(record: Record) -> tuple[str, str]:
    return file_of(record["benchmark"]), record["graph"]


def _key(record: Record) -> tuple[str, str, str, str]:
    case = str(record.get("case", ""))
    return record["benchmark"], record["graph"], case, record["program"]
