"""A user's loop of products and updates: the public call, its forms and its derivative."""
