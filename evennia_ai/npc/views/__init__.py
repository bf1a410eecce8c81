"""What the prompts of an NPC are made of, now and in past turns. Needs no running game."""
