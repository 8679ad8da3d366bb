"""Loops over a graph whose rows lie on several GPUs of one process: one launch on each of them."""
