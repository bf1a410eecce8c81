"""The settings of a game: `game` declares each once, `conf` reads and checks all."""
