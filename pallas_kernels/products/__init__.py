"""Products with vectors in one launch, and their derivatives."""
