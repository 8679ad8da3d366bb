"""Benchmarks of products and their gradients: one file each, `run(workload, options)`."""
