"""Tests of `evennia_ai.game.floor`: who answers and when."""
