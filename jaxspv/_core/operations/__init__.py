"""What operations are made of: calls, forms, plans, and functions that operands bring."""
