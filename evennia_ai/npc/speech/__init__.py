"""What an NPC says and does, sent so that every client shows it safely as plain text."""
