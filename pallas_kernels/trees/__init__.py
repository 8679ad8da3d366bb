"""Trees of a graph in one launch."""
