"""Weakly connected components: the public call and its forms."""
