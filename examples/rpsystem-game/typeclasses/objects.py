"""Things that can have a pose."""

from evennia.contrib.rpg.rpsystem import ContribRPObject


class ObjectParent:
    """The common base of things, characters, rooms and exits. Evennia's exits.py imports it."""


class Object(ObjectParent, ContribRPObject):
    """A thing."""
