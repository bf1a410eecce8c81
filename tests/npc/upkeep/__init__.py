"""Tests of `evennia_ai.npc.upkeep`: what is done in idle time."""
