"""The machine that kernels are written for: launches, primitives, Mosaic GPU, interpretation."""
