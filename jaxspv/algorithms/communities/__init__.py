"""Communities: groups of vertices with more edges inside than out."""
