"""NPCs of this game."""

from typeclasses.characters import Character

from evennia_ai import AIMixin


class NPC(AIMixin, Character):
    """A character with a mind; the mixin stands before the character class."""
