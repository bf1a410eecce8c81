"""Scanning: preparing the keys of a book for search, and finding them in a conversation."""
