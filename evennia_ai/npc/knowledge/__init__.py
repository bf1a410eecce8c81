"""What NPCs may look up in the game's knowledge bases, and what they are told of it."""
