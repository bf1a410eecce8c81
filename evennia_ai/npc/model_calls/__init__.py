"""Calls of models: their limits, stops by a person, and watchers."""
