"""Scanning: preparing the keys of a lorebook for search, and finding them in a conversation."""
