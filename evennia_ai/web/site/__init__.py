"""The pages for builders: what NPCs are made of and were told, to look at and to change."""
