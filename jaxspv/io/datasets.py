"""Public graphs by name, `GROUP/NAME`: downloaded once by pooch, checked and cached.

Names of SuiteSparse's collection are its own; `SNAP/` are Stanford's. A file whose bytes are known
is checked by their SHA-256, any other by the shape and the entries that the graph has.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import os
import pathlib
import shutil
from typing import Any

from .._core.eager.programs import caches
from ..algebra.monoids import max_
from ..formats import FORMATS
from ..interop.optional import required
from .files import bundled_names, read_mtx
from .opening import written_whole
from .tables.text import read_edgelist

SUITESPARSE = "https://sparse.tamu.edu/MM/{}.tar.gz"
SNAP = "https://snap.stanford.edu/data/{}.txt.gz"
RAW = "https://raw.githubusercontent.com/"
LAGRAPH = RAW + "GraphBLAS/LAGraph/afeb9dffca463fb966f1d9637986af55b04df461/data/{}.mtx"
NETWORKIT = RAW + "networkit/networkit/17427915b5b8d39fdd602e5247cd96bb8138d79c/input/{}"


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Where a graph is and what is known of it.

    Attributes:
        url: of a `.mtx`, a SuiteSparse archive that holds one, or a list of edges.
        shape, entries: of the matrix, both triangles of a symmetric one.
        sha256: of the file that the URL serves, or None where it is not known.
        directed: False: the list has every edge once.
    """

    url: str
    shape: tuple[int, int]
    entries: int
    sha256: str | None = None
    directed: bool = True


_SIZES = {  # of square matrices: rows and entries
    "Bai/cryg2500": (2500, 12349),
    "Bai/olm1000": (1000, 3996),
    "DIMACS10/ak2010": (45292, 217098),
    "DIMACS10/caidaRouterLevel": (192244, 1218132),
    "DIMACS10/chesapeake": (39, 340),
    "DIMACS10/coAuthorsDBLP": (299067, 1955352),
    "DIMACS10/delaunay_n13": (8192, 49094),
    "DIMACS10/delaunay_n16": (65536, 393150),
    "DIMACS10/luxembourg_osm": (114599, 239332),
    "DRIVCAV/cavity14": (2597, 76367),
    "Gleich/minnesota": (2642, 6606),
    "Gleich/usroads-48": (126146, 323900),
    "HB/arc130": (130, 1282),
    "HB/bcsstk13": (2003, 83883),
    "HB/bcsstk16": (4884, 290378),
    "HB/jagmesh7": (1138, 7450),
    "HB/west0067": (67, 294),
    "LAW/cnr-2000": (325557, 3216152),
    "Rommes/bips98_606": (7135, 34738),
    "SNAP/email-Enron": (36692, 367662),
    "SNAP/facebook_combined": (4039, 176468),
    "SNAP/p2p-Gnutella31": (62586, 147892),
    "SNAP/wiki-Vote": (8298, 103689),
}
_SHA256 = {
    "Bai/cryg2500": "17e7aae931e9ee9d55c4699e2790e83627263c89a89ce6ce550d6dcd28466d79",
    "Bai/olm1000": "d814ec8934fa86af5cba802630fb3d966e631a0c70339435638083ab80117da0",
    "DIMACS10/chesapeake": "5c5e43d4e4a429129426d9261f5ee5e0815cb58b70ebfca3b3e1aa2fa79f7c02",
    "HB/bcsstk13": "cd0794b0ac36c44f53f0e93a5a740faaa1044eab7e3db63fe15c559caae22c9e",
    "HB/jagmesh7": "cdcd561da557ad706e645d5314c6b512db1269461f88805c02cc13340225757f",
    "HB/west0067": "26e848564e3a0024ade49caba8c293c8b93ac81a34a2dba99e8b0b9f7bdd96d7",
    "LPnetlib/lp_afiro": "3fe7cd2193e20efcdfa7ae26273224be6f0c9ee73f8377b12cf2a8ee2c5129dc",
    "SNAP/wiki-Vote": "d2afbedf262126f820c6b3dd9f39a6d68e6f5ea839c0508297032ca77578b28a",
}
_NETWORKIT = {"DIMACS10/chesapeake": "chesapeake.mtx", "SNAP/wiki-Vote": "wiki-Vote.txt"}


def _known(name: str, shape: tuple[int, int], entries: int) -> Dataset:
    stem = name.partition("/")[2]
    if name in _NETWORKIT:
        url = NETWORKIT.format(_NETWORKIT[name])
    elif name in _SHA256:
        url = LAGRAPH.format(stem)
    else:
        url = SNAP.format(stem) if name.startswith("SNAP/") else SUITESPARSE.format(name)
    return Dataset(url, shape, entries, _SHA256.get(name), name != "SNAP/facebook_combined")


REGISTRY = {name: _known(name, (n, n), entries) for name, (n, entries) in _SIZES.items()}
REGISTRY["LPnetlib/lp_afiro"] = _known("LPnetlib/lp_afiro", (27, 51), 102)


def names() -> list[str]:
    """The graphs that `load` knows, those that come with the package first.

    >>> import jaxspv as jsp
    >>> jsp.datasets.names()[:4], "SNAP/wiki-Vote" in jsp.datasets.names()
    (['delaunay_n13', 'jazz', 'karate', 'minnesota'], True)
    """
    return [*bundled_names(), *sorted(REGISTRY)]


def load(
    name: str,
    *,
    format: str = "csr",
    folder: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Any:
    """A public graph by its name; the first call loads it from the network, if it is not bundled.

    Args:
        name: one of `names()`.
        format: name of the format.
        folder: where files are kept; None: `jaxspv/graphs` in `$XDG_CACHE_HOME` or `~/.cache`.
        progress: shows bars on stderr.

    Returns:
        The matrix. Vertices of lists of edges keep their numbers, so that some may have no edges.

    Raises:
        ValueError: there is no graph of this name; or the file is not the one that is known.
        OSError: the file is missing and the download failed; the message says where to place it.
        ImportError: it must be downloaded, and pooch is not installed.

    >>> import jaxspv as jsp
    >>> jsp.datasets.load("karate")
    CSR(float32[156], shape=(34, 34))
    """
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {sorted(FORMATS)}; got {format!r}.")
    if name in bundled_names():
        return read_mtx(name, format=format)
    if name not in REGISTRY:
        near = difflib.get_close_matches(str(name), names(), 3, 0.4)
        hint = f", such as {', '.join(near)}" if near else ""
        raise ValueError(f"`name` must be one of `jsp.datasets.names()`{hint}; got {name!r}.")
    known = REGISTRY[name]
    suffix = next(s for s in (".tar.gz", ".txt.gz", ".mtx", ".txt") if known.url.endswith(s))
    folder = caches() / "graphs" if folder is None else pathlib.Path(folder)
    path = folder / (name + (".mtx" if suffix == ".tar.gz" else suffix))  # the matrix of an archive
    current = path.exists()
    if current and known.sha256:
        with path.open("rb") as file:
            current = hashlib.file_digest(file, "sha256").hexdigest() == known.sha256
    if not current:
        _download(name, known, path, progress)
    how: dict[str, Any] = {"format": format, "progress": progress}
    if path.name.endswith(".mtx"):
        A = read_mtx(path, **how)
    else:
        A = read_edgelist(path, shape=known.shape, directed=known.directed, dup=max_, **how)
    found = A.shape, int(A.count)
    if found != (known.shape, known.entries):
        raise ValueError(
            f"{path} has shape and entries {found}, and {name} has {known.shape, known.entries}: "
            "remove the file to load it anew."
        )
    return A


def _download(name: str, known: Dataset, path: pathlib.Path, progress: bool) -> None:
    """Downloads the file of a graph to `path`; a partial download leaves no file."""
    pooch: Any = required("pooch", f"loading {name}")
    archive = known.url.endswith(".tar.gz")
    target = path.with_suffix(".tar.gz") if archive else path
    path.parent.mkdir(parents=True, exist_ok=True)
    loader = pooch.HTTPDownloader(progressbar=progress)
    hashed = known.sha256 and f"sha256:{known.sha256}"
    try:
        pooch.retrieve(known.url, hashed, target.name, target.parent, downloader=loader)
    except OSError as error:  # what `requests` raises, too
        raise OSError(
            f"{name} cannot be loaded from {known.url}: {error}. Without a connection, put the "
            f"file at {target}."
        ) from error
    if archive:
        _unpack(target, path)


def _unpack(archive: pathlib.Path, path: pathlib.Path) -> None:
    """Writes the matrix of a SuiteSparse archive to `path` and deletes the archive."""
    import tarfile  # for few files of those that are loaded

    member = f"{path.stem}/{path.stem}.mtx"
    try:
        with tarfile.open(archive) as opened, written_whole(path) as part:
            source: Any = opened.extractfile(member)  # None for a folder
            with source, open(part, "wb") as file:
                shutil.copyfileobj(source, file)
    except (tarfile.TarError, KeyError, TypeError, EOFError, OSError) as error:
        raise ValueError(f"{archive} is no archive with {member}: {error}") from error
    archive.unlink()
