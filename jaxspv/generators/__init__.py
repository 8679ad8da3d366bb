"""Random and regular graphs, made on the device."""
