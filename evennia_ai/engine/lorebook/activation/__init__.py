"""Activation: which entries are active in a turn, why the others are not, and their placement."""
