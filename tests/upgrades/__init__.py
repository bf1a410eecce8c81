"""Databases of released versions, and the tests that this version can still use them."""
