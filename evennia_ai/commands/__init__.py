"""The commands of evennia_ai. `evennia_ai.commands.cmdset.AICmdSet` adds all of them to a game."""
