"""Sparse matrix times dense vector: forms and derivatives."""
