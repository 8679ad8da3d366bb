"""Operators and SciPy's methods of sparse objects; `ops` above the formats fills them in."""
