"""The lorekeeper: a model that writes pages of a knowledge base, based on other pages."""
