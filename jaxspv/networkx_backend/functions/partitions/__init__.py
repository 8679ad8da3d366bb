"""Communities, colours and independent sets."""
