"""Tests of keys that are regular expressions."""
