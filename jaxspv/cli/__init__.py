"""The command line: `jaxspv COMMAND FILE`, see `jaxspv --help`."""
