"""Layouts of a graph that kernels want, computed once with NumPy."""
