"""Kernels for CPUs in C++: an algorithm a header, handlers of XLA's FFI, a loader."""
