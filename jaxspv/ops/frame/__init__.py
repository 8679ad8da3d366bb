"""The shared stages of operations: checked operands, entries, products, the write rule."""
