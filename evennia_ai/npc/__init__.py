"""The game loop of an NPC, in the order in which it happens, and views of its prompts."""
