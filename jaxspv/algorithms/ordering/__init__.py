"""Orders of the vertices that bring the entries near the diagonal."""
