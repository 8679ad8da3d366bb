"""Attention over the entries of each row: the public call, its forms, its derivative."""
