"""Tests of `evennia_ai.game.turn`: every way a turn can go."""
