"""The mind of one NPC: what it attends to, what it answers, and what it explains about itself."""
