"""Tests of lore activation: which entries are active, and where the prompt contains them."""
