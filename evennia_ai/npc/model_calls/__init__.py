"""The models of the game: limits, the stop, and every call."""
