"""Trees in a graph: spanning forests of least weight, the tree of a root."""
