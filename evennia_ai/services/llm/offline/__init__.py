"""A responder without a model: it classifies a line and quotes the character's texts."""
