"""The mind of one NPC: which events it answers, and how it explains itself to builders."""
