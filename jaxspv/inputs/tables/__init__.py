"""Graphs as tables with a row an edge: data frames, Parquet, and text with separators."""
