"""Tests of `evennia_ai.npc.turn`: the ways in which a turn may go."""
