"""Tests of how books and entries are read, written and converted."""
