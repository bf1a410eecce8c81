"""Restricted knowledge bases: safe summaries instead of pages, and a check for leaked secrets."""
