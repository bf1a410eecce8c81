"""The command `ai`: builders look into the minds of NPCs and control them."""
