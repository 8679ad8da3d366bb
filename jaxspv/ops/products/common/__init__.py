"""What products share: terms, expansion, repeated entries, empty rows."""
