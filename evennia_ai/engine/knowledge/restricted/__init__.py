"""Restricted knowledge: safe summaries instead of pages, and the check for leaks in summaries."""
