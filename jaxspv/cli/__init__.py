"""The command line: `jaxspv info|convert|bfs|sssp|pagerank|bench FILE`."""

from .main import main as main
