"""Matrices from arrays, edges and other libraries' sparse matrices; padding."""
