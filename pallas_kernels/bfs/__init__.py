"""Breadth-first search in one launch."""
