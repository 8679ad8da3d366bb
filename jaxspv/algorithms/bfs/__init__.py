"""Breadth-first search: the public call and its forms."""
