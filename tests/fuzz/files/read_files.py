"""`read_files.py WAY LIST`: reads the files that LIST names, in bounded memory; one answer each.

WAY is "reader", or a command of the command line.
"""

import contextlib
import io
import pathlib
import resource
import signal
import sys

import jaxspv as jsp
from jaxspv.cli._jaxspv_command import main

CAPACITY = 1 << 30  # bytes of address space beyond those of the warm process; files are below 10 kB
SECONDS = 60  # for a file, compiling included


class TooLong(BaseException):
    """A file took longer than `SECONDS`."""


def _ring(*_):
    raise TooLong


def _limit() -> None:
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + CAPACITY
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _command(way: str, path: str) -> str:
    out, errors = io.StringIO(), io.StringIO()
    more = {"convert": [path + ".out.npz"], "bfs": ["--source", "0"]}.get(way, [])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = main([way, path, *more])
        except SystemExit as stop:
            code = stop.code
    said = errors.getvalue().strip()
    if code == 0:
        return "read" if out.getvalue().strip() or way == "convert" else "said nothing"
    if code not in (1, 2) or not said or "\n" in said or "Traceback" in said:
        return f"ended with {code}: {said[:200]!r}"
    return "refused"


def _read(path: str) -> str:
    try:
        A = (jsp.load_npz if path.endswith(".npz") else jsp.read_mtx)(path)
        A.check_invariants()
    except (ValueError, OSError) as error:
        return "refused" if str(error) else "refused without a word"
    return "read"


def _answer(way: str, path: str) -> str:
    signal.alarm(SECONDS)
    try:
        return _read(path) if way == "reader" else _command(way, path)
    except BaseException as error:
        return f"{type(error).__name__} {str(error)[:200]!r} of {path}"
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _ring)
    way, listed = sys.argv[1:]
    warm = str(pathlib.Path(listed).with_name("warm.mtx"))
    jsp.write_mtx(warm, jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3)))
    print("warm", _answer(way, warm), flush=True)
    _limit()
    for path in pathlib.Path(listed).read_text().split("\n"):
        print("answer:", " ".join(_answer(way, path).split()), flush=True)
