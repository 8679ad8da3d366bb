"""Single-source shortest paths: the public call, its forms and its derivative."""
