"""SDDMM and other functions of the two ends of every entry."""
