"""The list of all NPCs, searched, sorted and read page by page.

It is fast with any number of NPCs, because no object is loaded. At most `MOST_LISTED` NPCs are
counted and sorted. If there are more, the list shows that many, says that there are more, and keeps
the order of creation, for which the database need not sort. Only a search by name reads every row.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.db.models import CharField, OuterRef, Q, QuerySet
from django.db.models.functions import Cast, Lower
from evennia.objects.models import ObjectDB

from evennia_ai.npc.senses.presence import paths_with_mind
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.store.history import past_turns
from evennia_ai.store.history.branches import builder_of, npc_of

MOST_LISTED: Final = 10_000
"""The most NPCs that are counted, sorted and shown."""
MOST_CALLED: Final = 200
"""The most rows whose names are compared in a search by name."""
_COLUMNS: Final = (
    "id",
    "db_key",
    "db_location_id",
    "db_location__db_key",
    "db_typeclass_path",
)
_BY_NAME: Final = (Lower("db_key"), "pk")
_BY_ROOM: Final = (Lower("db_location__db_key"), "db_location_id", *_BY_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedNPC:
    """An NPC in the list, with its name and room."""

    id: int
    name: str
    room_ref: str
    """The reference of its room, "" if it is nowhere."""
    room: str
    typeclass: str

    @property
    def ref(self) -> str:
        """Return the NPC's reference."""
        return str(self.id)


class NPCList:
    """The NPCs whose name or room contains `part`.

    The NPCs in `first_refs` come first. `among` restricts the list to these references. With
    `without_turn`, only NPCs that never had a turn are listed. They are sorted by name, with
    `by_room` first by the name of their room.
    """

    def __init__(
        self,
        part: str = "",
        *,
        first_refs: Collection[str] = (),
        among: Collection[str] | None = None,
        without_turn: bool = False,
        by_room: bool = False,
    ) -> None:
        rows = _rows()
        if part:
            rows = rows.filter(_name_or_room_has(part))
        if among is not None:
            rows = rows.filter(pk__in=_ids(among))
        if without_turn:
            rows = rows.exclude(past_turns.had_turn(Cast(OuterRef("pk"), CharField())))
        self._rows: Final = rows
        self._first_ids: Final = _ids(first_refs)
        self._order: Final = _BY_ROOM if by_room else _BY_NAME

    @property
    def count(self) -> int:
        """Return the number of listed NPCs, at most `MOST_LISTED`."""
        return min(self._counted, MOST_LISTED)

    @property
    def are_more(self) -> bool:
        """True if there are more than `MOST_LISTED` NPCs."""
        return self._counted > MOST_LISTED

    @cached_property
    def _counted(self) -> int:
        counted: int = self._rows[: MOST_LISTED + 1].count()
        return counted

    def page(self, number: int, *, size: int) -> tuple[ListedNPC, ...]:
        """Return one page, counted from 1.

        This makes at most two queries, and one more to count if `count` was not read before.
        """
        start = (number - 1) * size
        end = min(start + size, self.count)
        led = self._listed(self._rows.filter(pk__in=self._first_ids)) if self._first_ids else []
        others = self._rows.exclude(pk__in=self._first_ids) if self._first_ids else self._rows
        before, after = max(0, start - len(led)), max(0, end - len(led))
        rest = self._listed(others)[before:after] if after > before else []
        return tuple(_npc_from_row(*row) for row in (*led[start:end], *rest))

    def _listed(self, rows: QuerySet) -> Any:
        order = ("pk",) if self.are_more else self._order
        return rows.order_by(*order).values_list(*_COLUMNS)


def find_npc(ref: str) -> ListedNPC | None:
    """Return the NPC with this reference, None if there is none."""
    row = _rows().filter(pk__in=_ids([ref])).values_list(*_COLUMNS).first()
    return None if row is None else _npc_from_row(*row)


def npc_names(refs: Collection[str]) -> Mapping[str, str]:
    """Return the names of these NPCs and branches by reference, with one query.

    The name of a branch consists of the names of its NPC and its builder. References of deleted
    objects and of other objects are left out.
    """
    wanted = {part for ref in refs for part in (npc_of(ref), builder_of(ref))}
    rows = ObjectDB.objects.filter(pk__in=_ids(wanted)).order_by()
    found = list(rows.values_list("pk", "db_key", "db_typeclass_path"))
    names = {str(key): plain_name(name) for key, name, _ in found}
    with_mind = frozenset(paths_with_mind())
    npcs = {str(key) for key, _, path in found if path in with_mind}
    return {ref: _name_with_branch(ref, names) for ref in refs if npc_of(ref) in npcs}


def object_names(refs: Collection[str]) -> Mapping[str, str]:
    """Return the names of these objects by reference, with one query. They may be of any type."""
    rows = ObjectDB.objects.filter(pk__in=_ids(refs)).order_by().values_list("pk", "db_key")
    return {str(key): plain_name(name) for key, name in rows}


def _name_with_branch(ref: str, names: Mapping[str, str]) -> str:
    name, builder = names[npc_of(ref)], builder_of(ref)
    return f"{name}, branch of {names.get(builder, f'#{builder}')}" if builder else name


def npcs_called(text: str) -> tuple[str, ...]:
    """Return the references of the NPCs with this name or number ("#12").

    Case and colour codes are ignored.
    """
    wanted = text.strip()
    if not wanted:
        return ()
    is_it = _in_any_case("db_key__iexact", wanted) | (
        Q(db_key__contains="|") & _in_any_case("db_key__icontains", wanted)
    )
    if ids := _ids([wanted.removeprefix("#")]):
        is_it |= Q(pk__in=ids)
    rows = _rows().filter(is_it).order_by("pk").values_list("pk", "db_key")[:MOST_CALLED]
    return tuple(
        str(key)
        for key, name in rows
        if wanted in (str(key), f"#{key}") or plain_name(name).casefold() == wanted.casefold()
    )


def _rows() -> QuerySet:
    return ObjectDB.objects.filter(db_typeclass_path__in=paths_with_mind()).order_by()


def _name_or_room_has(part: str) -> Q:
    return _in_any_case("db_key__icontains", part) | _in_any_case(
        "db_location__db_key__icontains", part
    )


def _in_any_case(lookup: str, text: str) -> Q:
    """Return a condition that ignores case.

    SQLite ignores the case of ASCII letters only, so common spellings of other texts are added.
    """
    found = Q(**{lookup: text})
    if not text.isascii():
        for written in {text.lower(), text.upper(), text.capitalize()}:
            found |= Q(**{lookup: written})
    return found


def _ids(refs: Collection[str]) -> list[int]:
    """Return the numbers of references. Texts that are not references are left out."""
    return [int(ref) for ref in refs if ref.isascii() and ref.isdigit() and len(ref) < 10]


def _npc_from_row(
    key: int, name: str, room_id: int | None, room: str | None, typeclass: str
) -> ListedNPC:
    return ListedNPC(
        id=key,
        name=plain_name(name),
        room_ref="" if room_id is None else str(room_id),
        room=plain_name(room) if room else "",
        typeclass=typeclass,
    )
