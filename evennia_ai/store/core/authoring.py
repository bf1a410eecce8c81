"""Check what people write, and store the revisions that record every change of it.

Whether a text is a valid lock, and what it allows, is decided by commands. Cards and lorebooks are
interpreted by `evennia_ai.formats.cards` and `evennia_ai.engine.lorebook`.

Each change is a row with a number, counted from 1. The rows stay when the thing is removed, so a
number always means the same text.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NoReturn

from django.db.models import Max, Model, QuerySet

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    ComponentValueError,
    EditConflictError,
    FormatError,
    NotStoredError,
)
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.prompt.components import GAME, Scope

MAX_NAME: Final = 200
MAX_LOCKS: Final = 2000


def checked_name(name: str, *, what: str) -> str:
    """Return `name` if it is allowed as the name of a card or a lorebook.

    Raises:
        ComponentValueError: it is not allowed.
    """
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise ComponentValueError(f"name of the {what}", name, "1 to 200 printable characters")
    return name


def check_locks(locks: str) -> None:
    """Check that a lock string can be stored.

    Raises:
        ComponentValueError: it is too long or has characters that cannot be stored.
    """
    if len(locks) > MAX_LOCKS or make_storable(locks) != locks:
        wanted = f"a lock string of at most {MAX_LOCKS} characters"
        raise ComponentValueError("locks", locks, wanted)


def check_scope(scope: Scope, *, kinds: Sequence[str]) -> None:
    """Check that a scope is the whole game, or one of the allowed kinds with a valid reference.

    Args:
        kinds: The allowed kinds of scope, for example "npc" and "zone".

    Raises:
        ComponentValueError: The scope has another kind, or its reference is empty, longer than 255
            characters or not printable.
    """
    is_named = scope.kind in kinds and 0 < len(scope.ref) <= 255 and scope.ref.isprintable()
    if not is_named and scope != GAME:
        wanted = f"the game, or {', '.join(kinds)} with the tag or id of which one"
        raise ComponentValueError("scope", str(scope), wanted)


def checked_source(text: str, *, what: str, most: int, setting: str) -> str:
    """Check a JSON object given as text, and return its hash.

    Args:
        most: The highest number of characters.
        setting: The name of the setting that limits the length.

    Raises:
        FormatError: `text` is too long, or is not a strict JSON object.
    """
    if len(text) > most:
        raise FormatError(
            "size", f"{what} has {len(text)} characters and the limit is {most} ({setting})"
        )
    if make_storable(text) != text:
        raise FormatError("encoding", f"{what} has null characters or lone surrogates")
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise FormatError("json", f"{what} is not JSON: {error.msg} ({place})") from error
    except (RecursionError, ValueError) as error:
        raise FormatError("json", f"{what} is not strict JSON: {error}") from error
    if not isinstance(value, dict):
        raise FormatError("json", f"{what} must be a JSON object")
    return sha256(text.encode()).hexdigest()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a thing that people write."""

    number: int
    action: str
    """The kind of change, as one word such as "updated"."""
    changed_by: str
    changed_at: float
    """The time of the change, in seconds since 1970."""


class Revisions:
    """The revisions of one kind of thing, in one table."""

    def __init__(self, table: type[Model]) -> None:
        self._table: Final[Any] = table

    def of(self, **key: Any) -> QuerySet:
        """Return the revisions of one thing, oldest first, also if it was removed."""
        return self._table.objects.filter(**key).order_by("number")

    def newest_number(self, **key: Any) -> int:
        """Return the number of a thing's newest revision; 0 if it has no revisions.

        A removal is a revision too.
        """
        return self.of(**key).aggregate(newest=Max("number"))["newest"] or 0

    def next_number(self, *, least: int = 0, **key: Any) -> int:
        """Return the number of the next revision. It is higher than `least`."""
        return 1 + max(self.newest_number(**key), least)

    def last_changed_by(self, **key: Any) -> str:
        """Return the name of the person who made the newest change of a thing."""
        newest = self.of(**key).order_by("-number").values_list("changed_by", flat=True).first()
        return "somebody" if newest is None else newest

    def refuse_stale(self, what: str, seen: int | None, **key: Any) -> None:
        """Check that a thing was not changed since its revision `seen`.

        A removal is a change too. If `seen` is None, nothing is checked.

        Raises:
            EditConflictError: the thing was changed; the message names the person.
        """
        newest = self.newest_number(**key)
        if seen is not None and seen != newest:
            raise EditConflictError(what, seen, newest, self.last_changed_by(**key))

    def numbered(self, rows: QuerySet, number: int, *, what: str) -> Any:
        """Return the revision with this number among `rows`.

        Raises:
            NotStoredError: there is none; the message lists the numbers that exist.
        """
        row = rows.filter(number=number).first()
        if row is None:
            known = [str(one) for one in rows.values_list("number", flat=True)]
            raise NotStoredError(f"revision of {what} with number", number, known)
        return row

    def write(self, number: int, *, action: str, by: Actor, **columns: Any) -> int:
        """Store one revision inside the transaction of the change, and return its number."""
        self.write_all([{"number": number, "action": action, **columns}], by=by)
        return number

    def write_all(self, changes: Iterable[Mapping[str, Any]], *, by: Actor) -> None:
        """Store revisions of several things.

        Each revision is given as its columns, including the number and the action.
        """
        now = time.time()
        self._table.objects.bulk_create(
            [self._table(changed_by=by.name, changed_at=now, **columns) for columns in changes],
            batch_size=100,
        )
