"""Loops of a user's products and updates in one launch: pull and push."""
