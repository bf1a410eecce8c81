"""Work beside speaking: asked for by the game, done here or by workers, applied by the game."""
