"""The commands with which builders write what NPCs are told."""
