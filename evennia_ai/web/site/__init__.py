"""Web pages on which builders look at their NPCs and prompts, and change texts."""
