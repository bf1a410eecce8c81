"""The lorekeeper: a model writes pages of a knowledge base from a package of other pages."""
