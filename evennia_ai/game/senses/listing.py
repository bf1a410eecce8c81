"""Which NPCs a game has: their names and rooms in one query, without making an object of any.

An NPC is an object whose typeclass has a mind.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from evennia.objects.models import ObjectDB
from evennia.utils.utils import class_from_module

from evennia_ai.game.senses.presence import HasMind
from evennia_ai.game.senses.text import plain_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNPC:
    """An NPC by name and room; `is_busy` while it answers or somebody waits for it."""

    id: int
    name: str
    room: str
    typeclass: str
    is_busy: bool

    @property
    def ref(self) -> str:
        """The NPC's reference."""
        return str(self.id)


def all_npcs(part: str = "", *, busy_refs: Collection[str] = ()) -> tuple[ListedNPC, ...]:
    """The NPCs with `part` in their name or in that of their room; the busy ones first, by name."""
    wanted, busy = part.casefold(), set(busy_refs)
    found = []
    for key, name, room, typeclass in _minds():
        one = ListedNPC(
            id=key,
            name=plain_name(name),
            room=plain_name(room) if room else "",
            typeclass=typeclass,
            is_busy=str(key) in busy,
        )
        if wanted in one.name.casefold() or wanted in one.room.casefold():
            found.append(one)
    return tuple(sorted(found, key=lambda one: (not one.is_busy, one.name.casefold(), one.id)))


def _minds() -> Iterable[tuple[int, str, str | None, str]]:
    """Id, name, room and typeclass of every object with a mind."""
    paths = ObjectDB.objects.order_by().values_list("db_typeclass_path", flat=True).distinct()
    minds = [path for path in paths if class_with_mind(path) is not None]
    rows: Iterable[tuple[int, str, str | None, str]] = ObjectDB.objects.filter(
        db_typeclass_path__in=minds
    ).values_list("id", "db_key", "db_location__db_key", "db_typeclass_path")
    return rows


@lru_cache(maxsize=512)
def class_with_mind(path: str) -> type[HasMind] | None:
    """The typeclass of this path if it has a mind; a class that is gone has none."""
    try:
        found = class_from_module(path)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, HasMind) else None
