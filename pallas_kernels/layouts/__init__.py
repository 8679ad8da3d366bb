"""Layouts of a graph for kernels, computed once on the device."""
