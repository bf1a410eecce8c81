"""Background jobs for NPCs, which run in the game's process or in workers on any machine."""
