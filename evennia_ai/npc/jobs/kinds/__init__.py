"""The kinds of work: what is done beside a turn, by the game's own process or by a worker."""
