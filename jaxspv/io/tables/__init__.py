"""Graphs as tables, one row an edge: data frames, Parquet, text with separators."""
