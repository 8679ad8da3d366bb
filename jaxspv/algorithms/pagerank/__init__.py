"""PageRank: the public call and its forms."""
