"""One turn of an NPC: its prompt before sending, the sent messages, and their rebuilding."""
