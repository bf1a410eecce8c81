"""Commits what NPCs perceived before anything else happens."""
