"""Modules that Evennia's settings name."""
