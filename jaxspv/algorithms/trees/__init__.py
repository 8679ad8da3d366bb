"""Trees in a graph: spanning forests of least weight."""
