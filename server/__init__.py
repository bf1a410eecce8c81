"""This game's server: Evennia's settings in `conf`, and what `make` runs."""
