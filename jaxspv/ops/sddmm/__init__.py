"""Functions of the two ends of every entry, dot products of rows first: public call and forms."""
