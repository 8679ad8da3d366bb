"""Operators, monoids, semirings and masks: what products and writes are made of."""
