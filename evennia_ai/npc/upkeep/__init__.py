"""Work for NPCs outside of answers: compacting histories and keeping memories."""
