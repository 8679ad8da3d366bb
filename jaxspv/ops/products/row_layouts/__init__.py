"""Arrangements of rows that make products fast: bins, diagonals, groups."""
