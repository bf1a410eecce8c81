"""What an NPC perceives: who is present, what they are called, what is said, what happens."""
