"""The command `lore`: builders create, show, change and try out lorebooks and their entries."""
