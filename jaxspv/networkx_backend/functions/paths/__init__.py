"""Shortest paths by hops and by length, and what the distances between all pairs tell."""
