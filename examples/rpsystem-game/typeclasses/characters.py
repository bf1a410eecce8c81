"""Characters that others know by a short description until they are told a name."""

from evennia.contrib.rpg.rpsystem import ContribRPCharacter


class Character(ContribRPCharacter):
    """A player's character."""
