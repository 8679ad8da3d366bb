"""The model of costs on a mesh; tests/sharding compares its bytes with the programs."""

import pytest

from benchmarks.traversal import mesh_costs


def test_blocks_send_less_and_one_device_nothing():
    n = 2**20
    assert mesh_costs.bytes_of_level(n, 1, 1) == 0
    for R, C in ((64, 1), (1, 64)):
        assert mesh_costs.bytes_of_level(n, R, C) == n / 8 * 63 / 64
    assert mesh_costs.bytes_of_level(n, 8, 8) == 2 * n / 8 * 7 / 64
    assert [mesh_costs.exchanges_of_level(*g) for g in ((1, 1), (4, 1), (2, 2))] == [0, 2, 3]
    assert [mesh_costs.grid(k) for k in (1, 2, 8, 12, 1024)] == [
        *((1, 1), (1, 2), (2, 4), (3, 4), (32, 32))
    ]


def test_memory_and_work_are_split():
    one, two = (mesh_costs.memory_of_device(2**20, 2**26, P, 1) for P in (1, 2))
    assert 0.5 < two / one < 0.6
    for call in ("bfs", "pagerank"):
        size = call, 2**20, 2**26, 7
        assert mesh_costs.work(*size, 4) == mesh_costs.work(*size, 1) / 4
        sent = mesh_costs.predicted(*size, 2)
        shared = {form: mesh_costs.work(*size, 2, form) for form in ("xla", "kernels")}
        for form, seconds in shared.items():
            assert sent[f"{form}_model_ms"] > 1e3 * seconds


@pytest.mark.parametrize("devices", ["1", "1024"])
def test_the_command_says_that_nothing_was_run(devices, capsys):
    assert mesh_costs.main(["--devices", devices]) == 0
    printed = capsys.readouterr().out
    assert "not measured" in printed and "assumed" in printed and "rmat21-22" in printed
