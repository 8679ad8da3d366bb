"""Graphs of small degree in blocks along a line, each device with the rows next to its own."""
