"""Shortest paths by hops and by length, and numbers from the distances between all pairs."""
