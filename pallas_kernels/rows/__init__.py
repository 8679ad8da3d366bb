"""Ways to walk the rows of a CSR."""
