"""Sparse matrix times dense matrix: the public call, forms, derivatives."""
