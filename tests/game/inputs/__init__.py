"""Tests of `evennia_ai.game.inputs`: what a prompt is made from."""
