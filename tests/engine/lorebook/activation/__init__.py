"""Tests of which entries are active, and where they stand."""
