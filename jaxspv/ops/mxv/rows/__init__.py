"""A CSR walked row by row for products: prepared bins, native loops, XLA, derivatives."""
