"""Commits what was perceived before anything else happens."""
