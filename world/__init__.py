"""The demo game's content: a small harbour and the people in it."""
