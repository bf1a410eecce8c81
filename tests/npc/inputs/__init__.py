"""Tests of `evennia_ai.npc.inputs`: what a prompt is made from."""
