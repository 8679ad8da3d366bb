"""Matrix times vector: the public call, SpMV and SpMSpV by form, derivatives."""
