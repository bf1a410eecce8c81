"""Tests of `evennia_ai.npc.watch`: who looks on."""
