"""Tests of `evennia_ai.game.upkeep`: what is done in idle time."""
