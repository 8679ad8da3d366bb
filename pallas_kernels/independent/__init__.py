"""Sets without neighbours, and colours, in one launch: vertices that wait for each other."""
