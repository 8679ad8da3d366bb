"""Breadth-first search from several sources: 32 of them in a word."""
