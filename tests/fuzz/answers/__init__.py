"""Fuzzers of whole answers: algorithms, NetworkX's functions, long sums."""
