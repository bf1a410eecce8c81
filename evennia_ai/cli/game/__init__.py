"""A game's folder, opened for the command line, and what is taken out of it and in."""
