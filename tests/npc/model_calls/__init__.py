"""Tests of `evennia_ai.npc.model_calls`: calls of models, and their limits."""
