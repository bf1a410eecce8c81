"""The game loop of an NPC, from what it perceives to what it says, and views of its prompts."""
