"""Tests of `evennia_ai.game.speech`: what NPCs say."""
