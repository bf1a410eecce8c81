"""Hostile texts against whole turns: a corpus, the ways it goes in, and what must hold after it."""
