"""A turn of an NPC, from the event that it answers to what it says and does."""
