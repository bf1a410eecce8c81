"""Conversations of NPCs: their records, turns and state."""
