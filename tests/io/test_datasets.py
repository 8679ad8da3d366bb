"""Graphs by name, from a server on this machine: checked, kept, and clear where it is not there."""

import csv
import functools
import gzip
import hashlib
import http.server
import importlib.util
import tarfile
import threading

import numpy as np
import pytest
from graph_files import data_folder

import jaxspv as jsp
from jaxspv.io.datasets import REGISTRY, Dataset, load

pytestmark = pytest.mark.fast
needs_pooch = pytest.mark.skipif(
    importlib.util.find_spec("pooch") is None, reason="pooch, of the extra `data`, loads files"
)
A = jsp.from_edges([0, 1, 3], [1, 2, 0], [1.0, 2.0, 3.0], shape=(4, 4))


@pytest.fixture
def served(tmp_path, monkeypatch):
    """`served(name, file, **known)` enters a file of the folder `www` into the registry."""
    folder, asked = tmp_path / "www", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            asked.append(args[1])

    handler = functools.partial(Handler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()

    def enter(name, file, **known):
        url = f"http://127.0.0.1:{server.server_port}/{file}"
        monkeypatch.setitem(REGISTRY, name, Dataset(url, **known))
        return folder / file

    enter.asked = asked
    try:
        yield enter
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.long
@needs_pooch
def test_fetched_once_and_checked_by_its_bytes(served, tmp_path):
    path = served("G/a", "a.mtx", shape=(4, 4), entries=3, sha256="")
    jsp.write_mtx(path, A)
    known = hashlib.sha256(path.read_bytes()).hexdigest()
    served("G/a", "a.mtx", shape=(4, 4), entries=3, sha256=known)
    for _ in range(2):
        found = load("G/a", folder=tmp_path / "kept", format="csc")
        np.testing.assert_array_equal(found.todense(), A.todense())
    assert found.format == "csc" and len(served.asked) == 1
    (tmp_path / "kept/G/a.mtx").write_text("spoilt")
    load("G/a", folder=tmp_path / "kept")
    assert len(served.asked) == 2  # loaded anew
    path.write_text("something else")
    with pytest.raises(ValueError, match="hash"):
        load("G/a", folder=tmp_path / "elsewhere")


@pytest.mark.long
@needs_pooch
def test_archives_and_lists_checked_by_what_is_in_them(served, tmp_path):
    path = served("G/b", "b.tar.gz", shape=(4, 4), entries=3)
    jsp.write_mtx(tmp_path / "b.mtx", A)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "b.mtx", "b/b.mtx")
        archive.add(tmp_path / "b.mtx", "b/../../../outside.mtx")
    found = load("G/b", folder=tmp_path / "kept")
    np.testing.assert_array_equal(found.todense(), A.todense())
    assert sorted(p.name for p in (tmp_path / "kept/G").iterdir()) == ["b.mtx"]
    path = served("SNAP/c", "c.txt.gz", shape=(4, 4), entries=5, directed=False)
    jsp.write_edgelist(path, jsp.from_edges([0, 2, 3], [1, 1, 3]))
    assert int(load("SNAP/c", folder=tmp_path / "kept").count) == 5
    served("SNAP/c", "c.txt.gz", shape=(4, 4), entries=6)
    with pytest.raises(ValueError, match=r"c.txt.gz has shape.*3\), and SNAP/c.*6\)"):
        load("SNAP/c", folder=tmp_path / "kept")
    served("G/d", "b.tar.gz", shape=(4, 4), entries=3)
    with pytest.raises(ValueError, match="no archive with d/d.mtx"):
        load("G/d", folder=tmp_path / "kept")


@pytest.mark.long
@needs_pooch
def test_without_a_connection_and_by_hand(served, tmp_path, monkeypatch):
    served("G/e", "absent.mtx", shape=(4, 4), entries=3)
    place = tmp_path / "jaxspv/graphs/G/e.mtx"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(OSError, match=f"G/e cannot be loaded from http.*put the file at {place}"):
        load("G/e")
    jsp.write_mtx(place, A)
    assert int(load("G/e").count) == 3


def test_what_is_bundled_and_what_is_not_known(monkeypatch, tmp_path):
    assert load("jazz", format="coo").shape == (198, 198)
    with pytest.raises(ValueError, match="such as SNAP/wiki-Vote.*got 'SNAP/wikivote'"):
        load("SNAP/wikivote")
    with pytest.raises(ValueError, match="`format` must be one of"):
        load("jazz", format="dense")
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match="loading HB/west0067 needs pooch.*jaxspv.data"):
        load("HB/west0067", folder=tmp_path)


def test_what_is_recorded_is_what_the_graphs_have():
    """Against the list of the files at hand, and the bytes of those that are the same file."""
    folder = data_folder()
    if folder is None or not (folder / "MANIFEST.csv").exists():
        pytest.skip("no real graphs: put them into ../shared/data or set JAXSPV_DATA")
    with (folder / "MANIFEST.csv").open() as lines:
        listed = {row["file"].partition(".mtx")[0]: row for row in csv.DictReader(lines)}
    hashed = set()
    for name, known in REGISTRY.items():
        group, _, stem = name.partition("/")
        if stem not in listed:
            continue
        row = listed[stem]
        assert known.entries == int(row["nnz_expanded"]), name
        if group != "SNAP":  # there numbers of vertices were moved by one
            assert known.shape == (int(row["rows"]), int(row["cols"])), name
        if "LAGraph" in known.url:
            path = folder / row["file"]
            bytes_of = gzip.decompress if path.suffix == ".gz" else bytes
            assert hashlib.sha256(bytes_of(path.read_bytes())).hexdigest() == known.sha256
            hashed.add(name)
    assert {"HB/jagmesh7", "HB/west0067", "HB/bcsstk13", "Bai/cryg2500"} <= hashed
