"""Closures: sums over all paths of a graph, over any semiring."""
