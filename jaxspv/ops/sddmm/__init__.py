"""SDDMM and other functions of the two ends of every entry: the public call and its forms."""
