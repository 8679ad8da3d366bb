"""Triangles: the edges to higher rank, and their triangles by hash tables of rows."""
