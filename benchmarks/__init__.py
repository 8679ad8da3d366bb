"""Benchmarks of jaxspv against other programs: `python -m benchmarks --help`, README.md beside."""
