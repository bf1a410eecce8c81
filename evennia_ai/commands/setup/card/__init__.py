"""The command `card`: character cards, their files, rights, players and revisions."""
