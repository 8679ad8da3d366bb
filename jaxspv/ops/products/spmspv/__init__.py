"""Sparse matrix times sparse vector: forms."""
