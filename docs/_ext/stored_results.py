"""Pages of the stored results of the benchmarks, copied with mended links, and short tables."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil

LINK = re.compile(r"\[([^\]\n]*)\]\((?!http)([\w./-]+\.(?:md|json|png|py))\)")
GPU = "nvidia-h200"  # of the first tables of RESULTS.md
MACHINES = {"cpu": "a CPU", GPU: "an NVIDIA H200"}
TOC = "\n```{toctree}\n:hidden:\n\nprotocol\ntables\n```\n"
BASELINES = (  # row of the short table: question, file, heading of ours, heading of theirs
    ("SpMV, 21 graphs, CPU: BCOO over jaxspv", "cpu/spmv.md", "jaxspv", "BCOO"),
    ("SpMV, 21 graphs, CPU: BCSR over jaxspv", "cpu/spmv.md", "jaxspv", "BCSR"),
)


def speeds(page: str) -> dict[str, float]:
    """The geometric means that a page prints: programs' speed relative to SciPy."""
    table = page.partition("Speed relative to SciPy")[2]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    if not rows:
        return {}
    heads = [cell.strip() for cell in rows[0]]
    mean = next((row for row in rows if "geometric mean" in row[0]), None)
    if mean is None:
        return {}
    cells = [cell.strip() for cell in mean]
    found = {h: float(c) for h, c in zip(heads[1:], cells[1:], strict=False) if c}
    return found | {"SciPy": 1.0}


def over_scipy(page: str) -> list[tuple[str, float, int]]:
    """(operation, speed over SciPy inside jit, graphs) of the first table of over_scipy.md."""
    lines = page.partition("geometric means")[2].partition("By graph")[0].splitlines()
    heads, _, *rows = [[c.strip() for c in x.strip("|").split("|")] for x in lines if x[:1] == "|"]
    found = [dict(zip(heads, row, strict=True)) for row in rows]
    return [
        (row["operation"], float(row["jaxspv, inside jit"] or row["jaxspv"]), int(row["graphs"]))
        for row in found
    ]


def against(results: pathlib.Path) -> str:
    """The short table: how much longer another program takes than ours, geometric means."""
    lines = ["| time of the other over ours (above 1: jaxspv is faster) | |", "|-|-:|"]
    for question, file, ours, theirs in BASELINES:
        found = speeds((results / file).read_text()) if (results / file).exists() else {}
        if ours in found and theirs in found:
            ratio = found[ours] / found[theirs]
            lines.append(f"| {question} | [{ratio:.3g}]({_page(file)}) |")
    file = "cpu/over_scipy.md"
    for operation, speed, graphs in over_scipy((results / file).read_text()):
        question = f"{operation}, {graphs} graphs, one thread of a CPU: SciPy over jaxspv"
        lines.append(f"| {question} | [{speed:.3g}]({_page(file)}) |")
    gpu = (results.parent / "RESULTS.md").read_text()
    for title, name in (("BFS", "BFS"), ("SSSP", "shortest paths"), ("PageRank", "PageRank")):
        ratios, names = peers(gpu, title)
        if ratios:
            low, high, which = min(ratios), max(ratios), " or ".join(sorted(names))
            lines.append(
                f"| {name}, {len(ratios)} graphs, H200: the fastest peer ({which}) over jaxspv "
                f"| [{low:.3g} to {high:.3g}]({_page(f'{GPU}/{title.lower()}.md')}) |"
            )
    return "\n".join(lines) + "\n"


def libraries(results: pathlib.Path) -> str:
    """Milliseconds of every library at one question after the other, a table a graph."""
    path = results / "cpu/libraries.json"
    records = json.loads(path.read_text())["records"] if path.exists() else []
    parts = []
    for graph in ("ca-CondMat-cc1", "coAuthorsDBLP"):
        rows = [r for r in records if r["graph"] == graph]
        programs = list(dict.fromkeys(r["program"] for r in rows))
        if not rows:
            continue
        least = {(r["question"], r["program"]): r["min_ms"] for r in rows}
        ms = {key: f"{t:,.0f}" if t >= 1000 else f"{t:.3g}" for key, t in least.items()}
        title = f"[{graph}](results/cpu/libraries.md), {rows[0]['entries']:,} entries, on a CPU:"
        lines = [f"{title}\n", "| ms | " + " | ".join(programs) + " |"]
        lines.append("|-" + "|-:" * len(programs) + "|")
        for question in dict.fromkeys(r["question"] for r in rows):
            cells = (ms.get((question, program), "") for program in programs)
            lines.append(f"| {question} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def peers(page: str, title: str) -> tuple[list[float], set[str]]:
    """Time of the fastest peer over ours, graph by graph, from RESULTS.md; the peers' names."""
    section = page.partition(f"### {title}: one launch")[2].partition("\n### ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    if not rows:
        return [], set()
    heads = [cell.strip() for cell in rows[0]]
    ours, theirs = heads.index("jaxspv, inside jit"), heads.index("fastest peer")
    found = [(row[ours].strip(" *"), row[theirs].strip(" *")) for row in rows[2:]]
    names = {name for row in rows[2:] if (name := row[heads.index("which")].strip())}
    ratios = [float(b.replace(",", "")) / float(a.replace(",", "")) for a, b in found if a and b]
    return ratios, names


def headline(page: str, graph: str = "rmat21") -> str:
    """One number for the first page: a search of one graph, and the fastest peer's."""
    section = page.partition("### BFS: one launch")[2].partition("\n### ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    heads = [cell.strip() for cell in rows[0]]
    (row,) = (dict(zip(heads, map(str.strip, r), strict=True)) for r in rows if graph in r[0])
    ours, theirs = row["jaxspv, inside jit"], row["fastest peer"]
    entries = int(row["entries"].replace(",", "")) / 1e6
    return (
        f"On one NVIDIA H200 a breadth-first search of a graph of {entries:.0f} million entries "
        f"takes **{ours} ms**; the fastest other program that we know of ({row['which']}) takes "
        f"{theirs} ms. [All results]({_page('index.md')})\n"
    )


def _page(file: str) -> str:
    """The link to a copied page from a page of docs/."""
    return f"results/{file}"


def summary(readme: str) -> str:
    """The table of README, with links from a page of docs/."""
    block = readme.partition("<!-- numbers: ")[2].partition("-->\n")[2]
    block = block.partition("- Method: ")[0]
    return block.replace("](benchmarks/results/", "](results/")


def copy(benchmarks: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes the pages anew under `folder`; links to what is not copied become plain text."""
    shutil.rmtree(folder, ignore_errors=True)
    sources = {benchmarks / "RESULTS.md": folder / "index.md"}
    sources[benchmarks / "README.md"] = folder / "protocol.md"
    for path in sorted(benchmarks.glob("results/*/*")):
        if path.suffix in (".md", ".png"):
            sources[path] = folder / path.relative_to(benchmarks / "results")
    for source, target in sources.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(_mended(source, target, sources))
        else:
            shutil.copyfile(source, target)
    (folder / "against.md").write_text(against(benchmarks / "results"))
    (folder / "libraries.md").write_text(libraries(benchmarks / "results"))
    (folder / "summary.md").write_text(summary((benchmarks.parent / "README.md").read_text()))
    (folder / "headline.md").write_text(headline((benchmarks / "RESULTS.md").read_text()))
    (folder / "tables.md").write_text(_contents(folder))


def _mended(source: pathlib.Path, target: pathlib.Path, sources: dict) -> str:
    """The text of a page: links lead to other copied pages or are plain text; with a title."""

    def link(found: re.Match[str]) -> str:
        path = (source.parent / found[2]).resolve()
        if path not in sources:
            return found[1]
        return f"[{found[1]}]({os.path.relpath(sources[path], target.parent)})"

    text = LINK.sub(link, source.read_text())
    if not text.startswith("# "):
        heading, rest = f"## {source.stem}\n", text.partition("\n")[2]
        where = MACHINES.get(source.parent.name, source.parent.name)
        text = f"# {source.stem} on {where}\n\n" + (rest if text.startswith(heading) else text)
    return text + (TOC if target.stem == "index" else "")


def _contents(folder: pathlib.Path) -> str:
    pages = sorted(p.relative_to(folder).with_suffix("") for p in folder.glob("*/*.md"))
    lines = "\n".join(str(page) for page in pages)
    return f"# All tables\n\n```{{toctree}}\n:maxdepth: 1\n\n{lines}\n```\n"
