"""Pages of a knowledge base written by a model, from a package of other pages."""
