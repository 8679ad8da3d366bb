"""Sharded graphs made from a matrix, edges, R-MAT parameters or files."""
