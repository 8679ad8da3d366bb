"""The tree of shortest paths from distances: tight edges and parents."""
