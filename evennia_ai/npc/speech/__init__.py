"""What an NPC says and does, as others hear and see it, safe for every client."""
