"""Tests of `evennia_ai.game.mind`: what an NPC attends to and decides."""
