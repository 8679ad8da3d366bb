"""Files that claim more than they hold: a clear error before anything is allocated for them."""

import gzip
import subprocess
import sys

import pytest

import jaxspv as jsp

pytestmark = pytest.mark.fast
BANNER = "%%MatrixMarket matrix coordinate real general\n"
CLAIMS = {
    "entries": ("3 3 1000000000000\n1 1 1.0\n", "claims 1000000000000 entries"),
    "rows": ("2000000000 2000000000 1\n1 1 1.0\n", "use format='coo'"),
    "a negative number": ("3 3 -1\n", "line of sizes"),
    "too many digits": ("3 3 99999999999999999999999\n", "line of sizes"),
    "two numbers": ("3 3\n1 1 1.0\n", "line of sizes"),
    "no sizes": ("% only comments\n", "ends before"),
}


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@pytest.mark.parametrize("claim", CLAIMS)
def test_headers(tmp_path, claim, suffix):
    text, message = CLAIMS[claim]
    path = tmp_path / f"a{suffix}"
    write = gzip.open if suffix.endswith("gz") else open
    with write(path, "wt") as file:
        file.write(BANNER + text)
    with pytest.raises(ValueError, match=message) as error:
        jsp.read_mtx(path)
    assert str(path) in str(error.value)


def test_arrays(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n1000000 1000000\n1.0\n")
    with pytest.raises(ValueError, match="claims 1000000000000 entries"):
        jsp.read_mtx(path)


def test_long_and_thin_as_triplets(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text(BANNER + "2000000000 2000000000 2\n2000000000 1 1.0\n1 7 2.0\n")
    A = jsp.read_mtx(path, format="coo")
    assert A.row.tolist() == [0, 1999999999]
    assert A.col.tolist() == [6, 0]


def test_directories(tmp_path):
    for read in (jsp.read_mtx, jsp.load_npz):
        with pytest.raises(IsADirectoryError, match="is a directory"):
            read(tmp_path)


def test_output_is_tried_before_the_work(tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "jaxspv", "bfs", "karate", "--output", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=200)

    for output, message in (
        (tmp_path / "lv.txt", "must end in"),
        (tmp_path / "nowhere" / "lv.npz", "there is no folder"),
    ):
        done = run(str(output))
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_number_that_ended_the_process(tmp_path):
    """SciPy's reader put the file back to a negative place, in a destructor."""
    code = f"""
import jaxspv as jsp, pathlib
path = pathlib.Path({str(tmp_path)!r}) / "a.mtx"
lines = "%\\n3 3 4\\n1 2 1.5\\n2 3 -2\\n3 1 3.25\\n3 nan .5\\n2 3 -2\\n3 1 3.25\\n3 nan nan\\n"
for text in (lines, "3 3 2\\n1 1 1.0\\nx"):
    path.write_text({BANNER!r} + text)
    try:
        jsp.read_mtx(path)
    except ValueError as error:
        assert str(path) in str(error)
    else:
        raise AssertionError(text)
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.stdout.strip() == "alive", done.stderr[-2000:]
