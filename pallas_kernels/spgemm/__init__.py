"""Sparse matrix times sparse matrix: rows by warps that sort, rows by CTAs that mark, assembly."""
