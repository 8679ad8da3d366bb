"""Where the real graphs lie, for parametrising tests by file."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUFFIXES = (".mtx", ".mtx.gz")


def data_folder():
    """JAXSPV_DATA, or shared/data beside the repository; None where it does not exist."""
    folder = pathlib.Path(os.environ.get("JAXSPV_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def graph_files():
    """Its Matrix Market files, sorted by name."""
    folder = data_folder()
    if folder is None:
        return []
    return sorted(p for p in folder.iterdir() if p.name.endswith(SUFFIXES))
