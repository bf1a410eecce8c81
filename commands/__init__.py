"""The command sets of the demo game."""
