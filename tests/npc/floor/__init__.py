"""Tests of `evennia_ai.npc.floor`: who answers and when."""
