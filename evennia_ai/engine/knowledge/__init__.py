"""Knowledge: the wiki pages of a game's world, and the choice of pages that a model reads."""
