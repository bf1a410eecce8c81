"""Authoring: what authors give is looked at before it is stored, and every change of it stays.

Whether a text is a lock and what it allows whom is for the commands; what a card or a lorebook
means is for `evennia_ai.formats.cards` and `evennia_ai.engine.lorebook`. Changes are rows numbered
from 1, in a table of their kind. They stay when the thing is removed, so that a number means one
text for ever.
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
    """`name`; ComponentValueError where it cannot name a card or a lorebook."""
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise ComponentValueError(f"name of the {what}", name, "1 to 200 printable characters")
    return name


def check_locks(locks: str) -> None:
    """ComponentValueError where a lock string is too long or holds what cannot be stored."""
    if len(locks) > MAX_LOCKS or make_storable(locks) != locks:
        wanted = f"a lock string of at most {MAX_LOCKS} characters"
        raise ComponentValueError("locks", locks, wanted)


def check_scope(scope: Scope, *, kinds: Sequence[str]) -> None:
    """ComponentValueError where a scope is neither the game nor one of these kinds, named."""
    is_named = scope.kind in kinds and 0 < len(scope.ref) <= 255 and scope.ref.isprintable()
    if not is_named and scope != GAME:
        wanted = f"the game, or {', '.join(kinds)} with the tag or id of which one"
        raise ComponentValueError("scope", str(scope), wanted)


def checked_source(text: str, *, what: str, most: int, setting: str) -> str:
    """Return the hash of `text`.

    `most` characters are allowed, by the setting of this name. FormatError: it is too long, or no
    strict JSON object.
    """
    if len(text) > most:
        raise FormatError(
            "size", f"{what} has {len(text)} characters and the limit is {most} ({setting})"
        )
    if make_storable(text) != text:
        raise FormatError("encoding", f"{what} holds null characters or half pairs")
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise FormatError("json", f"{what} is no JSON: {error.msg} ({place})") from error
    except (RecursionError, ValueError) as error:
        raise FormatError("json", f"{what} is no strict JSON: {error}") from error
    if not isinstance(value, dict):
        raise FormatError("json", f"{what} must be a JSON object")
    return sha256(text.encode()).hexdigest()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of an authored thing."""

    number: int
    action: str
    """What was done; which words there are is for each kind."""
    changed_by: str
    changed_at: float
    """In epoch seconds."""


class Revisions:
    """The changes of one kind of authored thing, in the table that keeps them."""

    def __init__(self, table: type[Model]) -> None:
        self._table: Final[Any] = table

    def of(self, **key: Any) -> QuerySet:
        """The rows of one thing, oldest first; also of one that was removed."""
        return self._table.objects.filter(**key).order_by("number")

    def newest_number(self, **key: Any) -> int:
        """The newest number of a thing, removals counted; 0 where there never was one."""
        return self.of(**key).aggregate(newest=Max("number"))["newest"] or 0

    def next_number(self, *, least: int = 0, **key: Any) -> int:
        """The number of the change that comes next, above `least` in any case."""
        return 1 + max(self.newest_number(**key), least)

    def last_changed_by(self, **key: Any) -> str:
        """Who made the newest change of a thing."""
        newest = self.of(**key).order_by("-number").values_list("changed_by", flat=True).first()
        return "somebody" if newest is None else newest

    def refuse_stale(self, what: str, seen: int | None, **key: Any) -> None:
        """Raise EditConflictError if a thing was changed since its revision `seen`.

        Removals count as changes. None is a change that was made from no revision.
        """
        newest = self.newest_number(**key)
        if seen is not None and seen != newest:
            raise EditConflictError(what, seen, newest, self.last_changed_by(**key))

    def numbered(self, rows: QuerySet, number: int, *, what: str) -> Any:
        """The row of this number among `rows`; NotStoredError names the numbers there are."""
        row = rows.filter(number=number).first()
        if row is None:
            known = [str(one) for one in rows.values_list("number", flat=True)]
            raise NotStoredError(f"revision of {what} with number", number, known)
        return row

    def write(self, number: int, *, action: str, by: Actor, **columns: Any) -> int:
        """Write down one change, in the transaction that makes it; its number."""
        self.write_all([{"number": number, "action": action, **columns}], by=by)
        return number

    def write_all(self, changes: Iterable[Mapping[str, Any]], *, by: Actor) -> None:
        """Write down changes of several things, each as its columns, with its number and action."""
        now = time.time()
        self._table.objects.bulk_create(
            [self._table(changed_by=by.name, changed_at=now, **columns) for columns in changes],
            batch_size=100,
        )
