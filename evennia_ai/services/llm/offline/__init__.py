"""A responder without a language model.

It classifies a player's line and quotes the character's own texts.
"""
