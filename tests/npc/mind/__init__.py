"""Tests of `evennia_ai.npc.mind`: what an NPC attends to and decides."""
