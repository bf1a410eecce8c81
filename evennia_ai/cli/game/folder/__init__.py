"""A data folder of SillyTavern into a game and out (docs/build/moving-in.md says what is where)."""
