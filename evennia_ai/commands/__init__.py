"""The commands of evennia_ai; `evennia_ai.commands.cmdset.AICmdSet` has them all."""
