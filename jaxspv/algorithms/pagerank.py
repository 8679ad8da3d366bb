"""PageRank: the stationary distribution of a random surfer, by power iteration."""
