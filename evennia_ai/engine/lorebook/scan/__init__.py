"""Scanning: the keys of a book made ready, and where they stand in a conversation."""
