"""Attention over the rows of a CSR in one launch, and its cotangents."""
