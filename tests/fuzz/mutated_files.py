"""Mutated files (.mtx, .mtx.gz, .npz, .csv) through the readers, in a limited process."""

from __future__ import annotations

import gzip
import pathlib
import random
import subprocess
import sys
import tempfile

import jaxspv as jsp

from .cases import Case, Fuzzer

MEMORY = 4 << 30  # bytes of address space: JAX alone takes about 2 GB of it
READ = """
import resource, sys
import jaxspv as jsp
from jaxspv.inputs import files
resource.setrlimit(resource.RLIMIT_AS, (%d, %d))
for path in sys.argv[1:]:
    try:
        A = files.load(path)
        A.check_invariants()
        print("read")
    except (ValueError, OSError, TypeError) as error:
        print("refused" if str(error) else "without a word")
    except BaseException as error:
        print("crashed", type(error).__name__, path)
""" % (MEMORY, MEMORY)  # noqa: UP031
BATCH = 16  # files a process reads: starting one takes seconds


def _originals(folder: pathlib.Path) -> dict[str, bytes]:
    A = jsp.from_edges([0, 1, 2, 2], [1, 2, 0, 2], [1.5, -2.0, 3.25, 4.0], shape=(3, 3))
    made = {}
    for suffix in (".mtx", ".mtx.gz", ".npz"):
        path = folder / f"original{suffix}"
        (jsp.save_npz if suffix == ".npz" else jsp.write_mtx)(path, A)
        made[suffix] = path.read_bytes()
    return made | {".csv": b"source,target\n0,1\n1,2\n"}


def mutated(data: bytes, rng: random.Random) -> bytes:
    """`data` after a few changes: bytes flipped, cut out, repeated, digits made many."""
    new = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(new) + 1)
        kind = rng.choice(("flip", "cut", "repeat", "digits", "truncate", "sign"))
        if kind == "flip" and at < len(new):
            new[at] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del new[at : at + rng.randint(1, 9)]
        elif kind == "repeat":
            new[at:at] = new[at : at + rng.randint(1, 40)]
        elif kind == "digits":
            places = [i for i, byte in enumerate(new) if 48 <= byte < 58]
            if places:
                i = rng.choice(places)
                new[i : i + 1] = rng.choice(
                    (b"999999999999", b"-1", b"nan", b"1e400", b"2147483648")
                )
        elif kind == "truncate":
            del new[at:]
        else:
            new[at:at] = rng.choice((b"-", b"%", b"\n", b"\0", b" "))
    return bytes(new)


def run(case: Case) -> None:
    """Raises where a reader crashes, hangs, takes too much memory, or refuses without a word."""
    rng = random.Random(case["seed"])
    with tempfile.TemporaryDirectory() as name:
        folder, paths = pathlib.Path(name), []
        original = _originals(folder)[case["suffix"]]
        for number in range(BATCH):
            path = folder / f"{number}{case['suffix']}"
            if case["suffix"] == ".mtx.gz" and number % 2:  # broken inside, not outside
                path.write_bytes(gzip.compress(mutated(gzip.decompress(original), rng)))
            else:
                path.write_bytes(mutated(original, rng))
            paths.append(str(path))
        command = [sys.executable, "-c", READ, *paths]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        answers = done.stdout.split("\n")[:-1]
        wrong = [answer for answer in answers if answer not in ("read", "refused")]
        if done.returncode or len(answers) != BATCH or wrong:
            raise AssertionError(f"rc {done.returncode}, {wrong}, {done.stderr[-300:]}")


FUZZER = Fuzzer({"suffix": (".mtx", ".mtx.gz", ".npz", ".csv")}, run)
