"""Random neighbours and random walks of static sizes, on the device."""
