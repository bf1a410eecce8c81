"""Decide which lorebook entries are active in a turn, and place them in the prompt."""
