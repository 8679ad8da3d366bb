"""Triangles: the edges to higher ranks, and their triangles by tables of rows."""
