"""Mutated files (.mtx, .mtx.gz, .npz, .csv) through the readers and the command line.

A process with a limit of memory reads many: `read_files.py` next to this file.
"""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile

import numpy as np

import jaxspv as jsp

from ..cases import Case

SECONDS = 600  # for a batch; a file has `read_files.SECONDS`


class _Runs:
    """What a pickle does when it is loaded: makes a file that must not be there."""

    def __init__(self, path: str):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def _originals(folder: pathlib.Path) -> dict[str, list[bytes]]:
    A = jsp.from_edges([0, 1, 2, 2], [1, 2, 0, 2], [1.5, -2.0, 3.25, 4.0], shape=(3, 3))
    made: dict[str, list[bytes]] = {}
    for suffix in (".mtx", ".mtx.gz", ".npz"):
        path = folder / f"original{suffix}"
        (jsp.save_npz if suffix == ".npz" else jsp.write_mtx)(path, A)
        made[suffix] = [path.read_bytes()]
    pattern = b"%%MatrixMarket matrix coordinate pattern symmetric\n% c\n3 3 2\n2 1\n3 3\n"
    dense = b"%%MatrixMarket matrix array integer general\n2 2\n1\n0\n-3\n4\n"
    made[".mtx"] += [pattern, dense]
    made[".mtx.gz"].append(gzip.compress(pattern))
    return made | {".csv": [b"source,target\n0,1\n1,2\n"]}


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
                    (b"999999999999", b"-1", b"nan", b"1e400", b"2147483648", b"0", b"7")
                )
        elif kind == "truncate":
            del new[at:]
        else:
            new[at:at] = rng.choice((b"-", b"%", b"\n", b"\0", b" "))
    return bytes(new)


def _malicious(path: pathlib.Path, marker: pathlib.Path, rng: random.Random) -> None:
    """An archive of which some array is a pickle."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(sorted(arrays))
    bad = np.empty(1, object)
    bad[0] = _Runs(str(marker))
    np.savez(path, **(arrays | {name: bad}), allow_pickle=True)
    assert pickle.dumps(bad[0])


def _other_header(path: pathlib.Path, rng: random.Random) -> None:
    """An archive whose header, JSON, has changed: random changes of the file break its checksum."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = mutated(str(arrays["jaxspv"]).encode(), rng).decode("latin-1")
    if rng.random() < 0.5:  # still JSON
        words = json.loads(str(arrays["jaxspv"]))
        part = rng.choice([words, words["static"], words["leaves"]])
        part[rng.choice([*part, "x"])] = rng.choice([None, 3, -1, "x", [], {}, [3, 3, 3], True])
        header = json.dumps(words)
    np.savez(path, **(arrays | {"jaxspv": np.array(header)}), allow_pickle=False)


def run(case: Case) -> tuple[str, ...]:
    """Raises where a reader crashes, hangs, takes too much memory, or refuses without a word."""
    rng = random.Random(case["seed"])
    with tempfile.TemporaryDirectory() as name:
        folder, paths = pathlib.Path(name), []
        marker = folder / "executed"
        originals = _originals(folder)[case["suffix"]]
        for number in range(case["files"]):
            path = folder / f"{number}{case['suffix']}"
            original = rng.choice(originals)
            if case["suffix"] == ".mtx.gz" and number % 2:  # broken inside, not outside
                path.write_bytes(gzip.compress(mutated(gzip.decompress(original), rng)))
            elif case["suffix"] == ".npz" and number % 16 == 1:
                path.write_bytes(original)
                _malicious(path, marker, rng)
            elif case["suffix"] == ".npz" and number % 4 == 2:
                path.write_bytes(original)
                _other_header(path, rng)
            else:
                path.write_bytes(mutated(original, rng))
            paths.append(path)
        (folder / "list").write_text("\n".join(map(str, paths)))
        script = pathlib.Path(__file__).with_name("read_files.py")
        command = [sys.executable, str(script), case["way"], str(folder / "list")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        answers = [line for line in done.stdout.split("\n") if line.startswith("answer: ")]
        wrong = [line for line in answers if line[8:] not in ("read", "refused")]
        if done.returncode or len(answers) != len(paths) or wrong:
            at = paths[min(len(answers), len(paths) - 1)]
            raise AssertionError(
                f"rc {done.returncode}, {wrong[:3]}, {len(answers)} of {len(paths)} answered, next "
                f"{at.read_bytes()[:200]!r}; {done.stderr[-300:]}"
            )
        assert not marker.exists(), "a file was executed"
    return ("read or refused",)
