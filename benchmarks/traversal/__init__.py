"""Benchmarks of breadth-first search and shortest paths: `run(workload, options)` gives records."""
