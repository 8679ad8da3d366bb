"""Operators and SciPy's methods of sparse objects; `ops/install.py` sets what they do."""
