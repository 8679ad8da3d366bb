"""Graphs over the devices of a mesh: partition, exchange, construction."""
