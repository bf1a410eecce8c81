"""The models of the game: where they are, who may ask how much, the stop, and every call."""
