"""Graphs in files: Matrix Market, NumPy archives, tables, data sets by name."""
