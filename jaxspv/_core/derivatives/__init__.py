"""Derivatives: which tangents are known to be zero, and arrays that repeat others."""
