"""Tests of how lorebooks and their entries are read, written and converted."""
