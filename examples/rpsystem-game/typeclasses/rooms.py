"""Rooms that show the poses of those who are in them."""

from evennia.contrib.rpg.rpsystem import ContribRPRoom


class Room(ContribRPRoom):
    """A room."""
