"""Tests of `evennia_ai.npc.upkeep`: compacting histories and keeping memories."""
