"""PageRank in one launch: on one GPU and over the GPUs of a mesh."""
