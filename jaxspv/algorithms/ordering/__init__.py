"""Orders of the vertices by which entries come near the diagonal."""
