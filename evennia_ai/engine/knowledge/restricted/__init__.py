"""Restricted knowledge: safe summaries instead of pages, and what must not get out in them."""
