"""What two algorithms or more share: frontiers, sources, the status of a kernel."""
