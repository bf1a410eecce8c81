"""Work for NPCs in addition to answers: compacting histories and keeping memories."""
