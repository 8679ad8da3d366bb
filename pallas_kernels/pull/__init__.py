"""Loops that pull over all rows, one grid barrier a step."""
