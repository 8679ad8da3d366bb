"""Frontiers over devices: as lists while they are small, as words of 32 sources."""
