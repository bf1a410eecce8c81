"""Tests of `evennia_ai.npc.recording`: what was perceived is committed."""
