"""Graphs whose vertices have names: from and to NetworkX and igraph; results by name."""
