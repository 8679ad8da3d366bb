"""Rows for columns: counting sorts, matrices by either axis for loops, transposes with slots."""
