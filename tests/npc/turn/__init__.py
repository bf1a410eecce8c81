"""Tests of `evennia_ai.npc.turn`: every way a turn can go."""
