"""Knowledge: the pages of a world, and which of them a model gets."""
