"""Shortest paths over the rows of several GPUs, one launch on each."""
