"""Sharded graphs made on their devices, none of which ever holds all: edges, R-MAT, files."""
