"""Random and broken matrices through the C++ headers, under sanitizers, without JAX."""

import pathlib
import subprocess

import pytest

from jaxspv.native import build

HERE = pathlib.Path(__file__).parent


@pytest.mark.parametrize(("sanitizers", "cases"), [("address,undefined", 200), ("thread", 40)])
@pytest.mark.parametrize("program", ["fuzz_matrices", "fuzz_orders"])
def test_sanitizers_find_nothing(program, sanitizers, cases, tmp_path):
    if (compiler := build.compiler()) is None:
        pytest.skip("there is no C++ compiler")
    flags = ["-std=c++17", "-g", "-O1", f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    source, run = HERE / f"{program}.cc", tmp_path / "fuzz"
    headers = f"-I{build.HERE}"
    subprocess.run([compiler, *flags, headers, source, "-pthread", "-o", run], check=True)
    run = subprocess.run([run, str(cases)], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and run.stdout == "ok\n", run.stdout + run.stderr
