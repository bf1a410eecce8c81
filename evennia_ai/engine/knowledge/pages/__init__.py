"""Pages of a world: titles, metadata, markup, and the files they come in."""
