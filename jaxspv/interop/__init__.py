"""Graphs from and to NetworkX, igraph and edge lists of graph neural networks."""
