"""Operations on sparse matrices and vectors over any semiring."""
