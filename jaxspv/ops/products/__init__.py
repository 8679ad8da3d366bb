"""Products over any semiring: one package for each kind of operands."""
