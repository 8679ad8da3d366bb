"""Helpers for derivatives: symbolic zeros, and arrays that are copies of differentiable ones."""
