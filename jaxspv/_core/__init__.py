"""Foundations: pytrees, index dtypes, loops, batch rules, the choice of a backend."""
