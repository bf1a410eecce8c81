"""Knowledge: the pages of a world, and the selection of pages that a model gets."""
