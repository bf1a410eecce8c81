"""Tests of `evennia_ai.npc.speech`: what NPCs say and do."""
