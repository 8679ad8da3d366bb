"""Shortest paths and other monotone fixpoints in one launch."""
