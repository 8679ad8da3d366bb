"""Sets without conflicts: independent sets, colours, matchings."""
