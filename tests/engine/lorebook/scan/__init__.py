"""Tests of the search for keys in conversations."""
