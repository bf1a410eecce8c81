"""What an NPC is made of, now and in past turns: Django and our tables, no object of the game."""
