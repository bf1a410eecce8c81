"""What an NPC perceives: who is there and what they are called, what is said, what happens."""
