"""Commands by which builders set up what NPCs are told."""
