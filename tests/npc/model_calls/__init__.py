"""Tests of `evennia_ai.npc.model_calls`: models, their limits and calls."""
