"""The kinds of background work, run by the game's own process or by a worker."""
