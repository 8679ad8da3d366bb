"""What every operation goes through: checked operands, entries, products, the write rule."""
