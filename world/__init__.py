"""The content of the demo game: a small harbour and its people."""
