"""Centrality: how much of a graph passes a vertex, or how near it is to the rest."""
