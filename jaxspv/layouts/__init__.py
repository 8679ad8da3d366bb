"""What `prepare` computes once per graph: row bins, probe tables, orders."""
