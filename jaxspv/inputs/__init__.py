"""Making matrices: from edges, from other libraries' objects, from files, by generators."""
