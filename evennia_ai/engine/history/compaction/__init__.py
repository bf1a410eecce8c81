"""Compaction: replace the older part of a conversation's history with a summary."""
