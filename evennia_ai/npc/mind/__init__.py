"""The mind of one NPC: what it attends to, what it answers, what it explains of itself."""
