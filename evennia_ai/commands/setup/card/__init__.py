"""The command `card`: character cards, their files, grants, NPCs and revisions."""
