"""The rooms of the game, listed without loading an object."""

from dataclasses import dataclass
from functools import lru_cache

from django.db.models.functions import Lower
from evennia.objects.models import ObjectDB
from evennia.objects.objects import DefaultRoom
from evennia.utils.utils import class_from_module

from evennia_ai.engine.errors import NotStoredError
from evennia_ai.npc.senses.text import plain_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRoom:
    """A room with its reference."""

    ref: str
    name: str


def list_rooms(most: int) -> tuple[ListedRoom, ...]:
    """Return at most this many rooms, in the order of their names. Makes one query."""
    rows = ObjectDB.objects.filter(db_location=None, db_destination=None)
    found = rows.order_by(Lower("db_key"), "pk").values_list("pk", "db_key", "db_typeclass_path")
    rooms = (
        ListedRoom(ref=str(key), name=plain_name(name))
        for key, name, path in found.iterator()
        if _is_room(path)
    )
    return tuple(room for room, _ in zip(rooms, range(most), strict=False))


def refuse_missing_room(ref: str) -> None:
    """Refuse a reference that no room has.

    Raises:
        NotStoredError: There is no such room.
    """
    path = (
        ObjectDB.objects.filter(pk=int(ref)).values_list("db_typeclass_path", flat=True).first()
        if ref.isascii() and ref.isdecimal() and len(ref) < 10
        else None
    )
    if path is None or not _is_room(path):
        raise NotStoredError("room with the database number", ref[:20])


@lru_cache(maxsize=512)
def _is_room(path: str) -> bool:
    try:
        found = class_from_module(path)
    except ImportError:
        return False
    return isinstance(found, type) and issubclass(found, DefaultRoom)
