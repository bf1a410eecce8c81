"""What NPCs may look up in the game's knowledge bases, and how much of it they get."""
