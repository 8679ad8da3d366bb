"""Connectivity: strong components, cores, bipartitions."""
