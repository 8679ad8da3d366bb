"""Sparse matrix times dense matrix: the product by form, derivatives."""
