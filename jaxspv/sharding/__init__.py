"""Graphs spread over the devices of a mesh, and the public functions on them."""
