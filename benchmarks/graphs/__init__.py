"""Benchmarks of graph algorithms: one file each, `run(workload, options)` gives its records."""
