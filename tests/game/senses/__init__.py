"""Tests of `evennia_ai.game.senses`: what NPCs perceive."""
