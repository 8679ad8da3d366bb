"""Tools for who writes kernels: profiles, counters, settings, races; no part of the protocol."""
