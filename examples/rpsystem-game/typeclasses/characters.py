"""Characters that other characters know by a short description until they learn a name."""

from evennia.contrib.rpg.rpsystem import ContribRPCharacter


class Character(ContribRPCharacter):
    """A player's character."""
