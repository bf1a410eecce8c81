"""Prepare the keys of lorebooks for search, and find them in a conversation."""
