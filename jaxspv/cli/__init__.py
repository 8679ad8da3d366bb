"""The command line: `jaxspv COMMAND FILE`, see `jaxspv --help`."""

from .main import main as main
