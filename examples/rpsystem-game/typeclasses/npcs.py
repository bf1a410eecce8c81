"""NPCs of this game."""

from typeclasses.characters import Character

from evennia_ai import AIMixin


class NPC(AIMixin, Character):
    """A character with a mind. The mixin must be listed before the character class."""
