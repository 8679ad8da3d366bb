"""Kernels for CPUs in C++: one header an algorithm, handlers of XLA's FFI, what loads and calls them."""
