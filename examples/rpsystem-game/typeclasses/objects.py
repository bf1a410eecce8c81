"""Things that can have a pose."""

from evennia.contrib.rpg.rpsystem import ContribRPObject


class ObjectParent:
    """What all things, characters, rooms and exits have in common; Evennia's exits.py wants it."""


class Object(ObjectParent, ContribRPObject):
    """A thing."""
