"""Functions on a sharded graph in one launch on each GPU, which reach into each other's memory."""
