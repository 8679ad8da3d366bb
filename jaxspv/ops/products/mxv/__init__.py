"""Matrix times vector: the public call, which takes SpMV or SpMSpV."""
