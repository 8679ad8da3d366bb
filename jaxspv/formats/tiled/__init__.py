"""Matrices and vectors in tiles: with values, as bitmasks, and how they are arranged."""
