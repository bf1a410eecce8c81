"""Tests of `evennia_ai.npc.mind`: which events an NPC answers, and how minds explain themselves."""
