"""Helpers that several algorithms share: frontiers, sources, weights, the status of a kernel."""
