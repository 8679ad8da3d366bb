"""NetworkX's own tests on the backend: `python tests/networkx_suite.py [--quick] [PACKAGE ...]`.

Every call that the backend takes is converted and sent to it, the others to NetworkX. Prints how
many calls really ran through it, by function. Exit status 1: a test failed, or fewer than `LEAST`
calls ran through. Works from a source tree: the entry points of pyproject.toml are laid out in a
folder of their own, whatever is installed.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import shutil
import sys
import tomllib

ROOT = pathlib.Path(__file__).parent.parent
LEAST = 1000
BLOCK = 10  # tests that follow each other share compiled programs
QUICK = """algorithms.link_analysis algorithms.shortest_paths algorithms.centrality
algorithms.components algorithms.traversal algorithms.tests.test_cluster
algorithms.tests.test_core"""


def lay_out(folder):
    """The entry points of the project and the module of `networkx.backend_info`, importable."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    name, version = (project["project"][k] for k in ("name", "version"))
    made = folder / f"{name}-{version}.dist-info"
    made.mkdir(parents=True, exist_ok=True)
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = project["project"]["entry-points"].items()
    lines = [f"[{g}]\n" + "\n".join(f"{k} = {v}" for k, v in e.items()) for g, e in groups]
    (made / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for source, target in shipped(project).items():
        shutil.copy(ROOT / source, folder / target)
    return folder


def shipped(project):
    """Files that the wheel holds under another name."""
    return project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]


class Counting:
    """Counts the calls of the backend's functions that gave a result or NetworkX's own error."""

    def __init__(self, part=(0, 1)):
        self.part = part
        self.calls, self.refused = collections.Counter(), collections.Counter()
        self.outcomes = collections.Counter()

    def wrap(self, backend, names):
        for name in names:
            setattr(backend, name, self.counted(name, getattr(backend, name)))

    def counted(self, name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            try:
                result = function(*args, **kwargs)
            except NotImplementedError:
                self.refused[name] += 1
                raise
            except Exception:
                self.calls[name] += 1
                raise
            self.calls[name] += 1
            return result

        return call

    def pytest_collection_modifyitems(self, config, items):
        """Keeps every K-th block of tests, where a part was asked for."""
        number, parts = self.part
        mine = [i // BLOCK % parts == number for i in range(len(items))]
        config.hook.pytest_deselected(
            items=[i for i, kept in zip(items, mine, strict=True) if not kept]
        )
        items[:] = [i for i, kept in zip(items, mine, strict=True) if kept]

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            kind = "xfailed" if hasattr(report, "wasxfail") else report.outcome
            self.outcomes[kind] += 1


def run(folder, packages, more=(), part=(0, 1)):
    """Runs the tests; (exit code of pytest, Counting)."""
    os.environ.update(NETWORKX_TEST_BACKEND="jaxspv", NETWORKX_FALLBACK_TO_NX="1")
    sys.path[:0] = [str(lay_out(folder)), str(ROOT)]
    import pytest

    from jaxspv.networkx_backend import backend
    from jaxspv.networkx_backend.registry import FUNCTIONS

    counting = Counting(part)
    counting.wrap(backend, FUNCTIONS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    options = ["-q", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini"), *more]
    os.chdir(folder)
    names = [".".join(["networkx", *([p] if p else [])]) for p in packages]
    return int(pytest.main([*options, "--pyargs", *names], plugins=[counting])), counting


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", help="below networkx, such as algorithms.centrality")
    parser.add_argument("--quick", action="store_true", help="the packages that use it most")
    parser.add_argument("--part", default="0/1", help="I/N: part I = 0 .. N - 1 of N processes")
    parser.add_argument("--folder", type=pathlib.Path, help="for the entry points; a new one")
    parser.add_argument("--json", type=pathlib.Path, help="write the counts")
    parser.add_argument("--pytest", default="", help="more options of pytest, as one word")
    args = parser.parse_args()
    import tempfile

    folder = (args.folder or pathlib.Path(tempfile.mkdtemp())).resolve()
    packages = args.packages or (QUICK.split() if args.quick else [""])
    json_file = args.json and args.json.resolve()
    part = tuple(map(int, args.part.split("/")))
    code, counting = run(folder, packages, args.pytest.split(), part)
    total = sum(counting.calls.values())
    for name, count in counting.calls.most_common():
        print(f"{count:8} {name}")
    never = sorted(set(counting.calls) ^ set(_claimed()))
    print(f"never called: {' '.join(never) or 'none'}")
    print(f"handed back to NetworkX: {sum(counting.refused.values())} {dict(counting.refused)}")
    print(f"tests: {dict(counting.outcomes)}")
    print(f"{total} calls of {len(counting.calls)} functions ran through jaxspv")
    if json_file:
        document = {"calls": counting.calls, "refused": counting.refused}
        json_file.write_text(json.dumps({**document, "tests": counting.outcomes}, indent=1))
    sys.exit(1 if code or total < LEAST / part[1] else 0)


def _claimed():
    from jaxspv.networkx_backend.registry import FUNCTIONS

    return FUNCTIONS


if __name__ == "__main__":
    main()
