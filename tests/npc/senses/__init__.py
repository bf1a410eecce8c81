"""Tests of `evennia_ai.npc.senses`: what NPCs perceive."""
