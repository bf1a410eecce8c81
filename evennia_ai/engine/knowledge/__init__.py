"""Knowledge: the wiki pages of a game's world, and which of them a model gets."""
