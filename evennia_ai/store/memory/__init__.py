"""What NPCs remember, and whom they know by which name."""
