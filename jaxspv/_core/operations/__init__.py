"""What operations are made of: calls, forms, plans, and the rules of a primitive."""
