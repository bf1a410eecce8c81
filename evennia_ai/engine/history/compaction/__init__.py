"""Compaction: replace the older part of a history with a summary."""
