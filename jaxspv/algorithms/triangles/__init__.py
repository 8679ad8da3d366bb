"""Triangle counting: the public call and its form on a mesh."""
