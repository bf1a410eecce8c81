"""The modules that Evennia's settings name."""
