"""The C++ headers under sanitizers, on random graphs and on arrays of any bytes."""

import pathlib
import subprocess

import pytest

from jaxspv.native import build

FUZZ = pathlib.Path(__file__).with_name("fuzz.cc")
pytestmark = [pytest.mark.long, pytest.mark.skipif(build.compiler() is None, reason="no compiler")]


@pytest.mark.parametrize("sanitizer, count", [("address,undefined", 200), ("thread", 60)])
def test_random_graphs_under_sanitizers(sanitizer, count, tmp_path):
    program = tmp_path / "fuzz"
    flags = ["-std=c++17", "-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    include = ["-I", str(build.HERE)]
    command = [build.compiler(), *flags, *include, str(FUZZ), "-o", str(program), "-pthread"]
    subprocess.run(command, check=True)
    done = subprocess.run([str(program), str(count)], capture_output=True, text=True)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
