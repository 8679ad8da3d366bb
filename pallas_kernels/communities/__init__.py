"""Communities: vertices look for the best one around them, and move."""
