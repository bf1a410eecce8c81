"""Wiki pages of a game's world: titles, metadata, markup, and the files they come in."""
