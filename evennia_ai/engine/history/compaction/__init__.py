"""Compaction: when the older part of a history gives way to a summary, and who makes that."""
