"""The library: a further database, in which games share knowledge bases and cards."""
