"""Knowledge: pages of a world and what of them goes to a model."""
