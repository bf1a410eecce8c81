"""Tests of `evennia_ai.game.recording`: what was perceived is committed."""
