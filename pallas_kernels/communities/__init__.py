"""Communities: each vertex moves to the best community among its neighbours."""
