"""A responder without a model: what was asked, what of the character's texts answers it."""
