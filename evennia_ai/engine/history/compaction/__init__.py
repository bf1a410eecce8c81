"""Compaction: replaces the older part of a history by a summary."""
