"""`python -m benchmarks report`: writes, or checks, all that is made from the stored results.

That is the Markdown beside each JSON of `results/`, RESULTS.md and the block of numbers in README.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

from . import plot, summary
from .stored import RESULTS, all_stored, save, with_runs
from .table import render

ROOT = RESULTS.parents[1]
README = ROOT / "README.md"
BEGIN = "<!-- numbers: written by `python -m benchmarks report`, do not edit -->"
END = "<!-- end of numbers -->"
MOST_LOAD = 1.0  # of a host whose CPU is measured


def texts() -> dict[pathlib.Path, str]:
    """What every generated file should hold."""
    documents = all_stored()
    found = {
        path.with_suffix(".md"): f"{render(document)}\n"
        f"This page is written by `python -m benchmarks report` from {path.name}.\n"
        for path, document in documents.items()
    }
    by_name = {f"{path.parent.name}/{path.stem}": d for path, d in documents.items()}
    found[RESULTS.parent / "RESULTS.md"] = summary.results(by_name)
    readme = ROOT / "README.md"
    found[readme] = between(readme.read_text(), summary.readme(by_name))
    return found


def between(text: str, block: str) -> str:
    """`text` with what stands between the markers replaced by `block`."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"README.md should hold {BEGIN!r} and {END!r} once each")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{block}\n{END}{rest.partition(END)[2]}"


def stale() -> list[str]:
    """Generated files that differ from what they should hold, and those that nothing makes."""
    wanted = texts()
    differ = [p for p, text in wanted.items() if not p.exists() or p.read_text() != text]
    orphans = set(RESULTS.glob("*/*.md")) - set(wanted)
    return sorted(str(p.relative_to(ROOT)) for p in {*differ, *orphans})


def too_busy(document: dict[str, Any]) -> str | None:
    """Why the times of a run are not stored: its host had other work, which a CPU's suffer from."""
    environment = document["environment"]
    load = environment["load"][0]
    if environment["platform"] != "cpu" or load <= MOST_LOAD:
        return None
    return f"its host had a load of {load:.1f} at the start; times of a CPU need one below 1."


def by_commit(documents: dict[pathlib.Path, Any]) -> dict[str, list[str]]:
    """The commits that tables were measured on, each with its tables."""
    found: dict[str, list[str]] = {}
    for path, document in documents.items():
        for commit in sorted({str(run["commit"])[:8] for run in document["runs"]}):
            found.setdefault(commit, []).append(f"{path.parent.name}/{path.stem}")
    return found


def main(argv: list[str]) -> int:
    """The command; 1 if a file is stale under `--check`, or if tables are of several commits."""
    p = argparse.ArgumentParser(prog="python -m benchmarks report", description=__doc__)
    p.add_argument("--check", action="store_true", help="write nothing; 1 if a file is stale")
    p.add_argument("--mixed", action="store_true", help="allow tables of different commits")
    p.add_argument(
        "--add",
        nargs="+",
        type=pathlib.Path,
        default=[],
        metavar="RUN.json",
        help="first merge these outputs of `--json` into the results of their device",
    )
    args = p.parse_args(argv)
    if args.check and args.add:
        p.error("--check writes nothing, --add does")
    runs = {path: json.loads(path.read_text()) for path in args.add}
    for path, document in runs.items():
        if reason := too_busy(document):
            p.error(f"{path.name}: {reason}")
    new = with_runs(runs.values())
    if len(commits := by_commit(all_stored() | new)) > 1 and not args.mixed:
        listed = [f"{commit}: {' '.join(tables)}" for commit, tables in commits.items()]
        print("\n".join(["tables of several commits; `--mixed` allows them:", *listed]))
        return 1
    for path, document in new.items():
        save(path, document)
        if path.with_suffix(".png").exists():
            plot.save(document, path.with_suffix(".png"))
    old = stale()
    if args.check:
        print("\n".join([*old, "run `python -m benchmarks report`"] if old else ["up to date"]))
        return int(bool(old))
    for path, text in texts().items():
        path.write_text(text)
    print("\n".join(["written:", *old] if old else ["up to date"]))
    return 0
