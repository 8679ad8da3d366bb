"""The write rule of GraphBLAS: operands, entries, capacity, mask, accumulator."""
