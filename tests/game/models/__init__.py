"""Tests of `evennia_ai.game.models`: models, their limits and calls."""
