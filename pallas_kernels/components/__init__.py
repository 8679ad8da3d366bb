"""Connected components in one launch: on one GPU and over several."""
