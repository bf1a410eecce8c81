"""Store the conversations of NPCs: their records, turns and state."""
