"""Foundations: pytrees, index dtypes, compilation, batch rules, the choice of a backend."""
