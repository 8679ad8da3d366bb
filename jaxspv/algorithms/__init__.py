"""Graph algorithms."""
