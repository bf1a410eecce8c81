"""What an NPC perceives: who is present and what they are called, what is said and what happens."""
