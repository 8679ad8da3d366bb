"""Conversions between CSR and CSC: counting sorts, transposes with slots."""
