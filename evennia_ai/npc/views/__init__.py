"""What an NPC is made of and was told: Django and our tables, no object of the game."""
