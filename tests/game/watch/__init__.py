"""Tests of `evennia_ai.game.watch`: who looks on."""
