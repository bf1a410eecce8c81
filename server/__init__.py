"""The server of the demo game: Evennia's settings in `conf`, and the programs that `make` runs."""
