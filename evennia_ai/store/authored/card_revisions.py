"""Revisions of cards: who imported, approved, granted and reverted what, and when; and their files.

An import is written down here alone: it waits, and changes nothing until it is approved. The bytes
of a file are kept as they were given, each once.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from django.db.models import QuerySet

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.prompt.components import Grant, Grants
from evennia_ai.formats.cards.limits import decode_utf8
from evennia_ai.formats.cards.loading import CardImport
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.core import importing
from evennia_ai.store.core.authoring import Change, checked_source
from evennia_ai.store.core.importing import Imports, grants_from, grants_text
from evennia_ai.store.core.snapshots import value_of

Action = Literal[
    "created",
    "edited",
    "imported",
    "approved",
    "granted",
    "revoked",
    "reverted",
    "rejected",
    "removed",
]
# After these the card is in force as the revision has it.
IN_FORCE: Final = ("created", "edited", "approved", "granted", "revoked", "reverted")
_revisions: Final = Imports(models.CardRevision)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFile:
    """A card's file: its bytes, what carries the card, and the card's JSON text."""

    content: bytes
    carrier: str
    source: str


def file_of(content: bytes, found: CardImport) -> CardFile:
    """The file of these bytes, from which `found` was read; a JSON file is its own text."""
    is_text = found.carrier == "json"
    source = (
        decode_utf8(content, where="card")
        if is_text
        else json.dumps(found.raw, ensure_ascii=False, allow_nan=False)
    )
    return CardFile(content=content, carrier=found.carrier, source=source)


def json_file(source: str) -> CardFile:
    """The file that a JSON text is."""
    return CardFile(content=source.encode(), carrier="json", source=source)


def kept_file(file: CardFile, *, what: str) -> models.CardFile:
    """The row of the file, made where there is none; for the store alone.

    FormatError: the card's text is no strict JSON object, or longer than the limit.
    """
    most = conf().card_limits.text_bytes
    checked_source(file.source, what=what, most=most, setting="EVENNIA_AI_CARD_LIMITS, text_bytes")
    row, _ = models.CardFile.objects.get_or_create(
        sha256=sha256(file.content).hexdigest(),
        defaults={"carrier": file.carrier, "content": file.content, "source": file.source},
    )
    return row


def read_file(row: models.CardFile) -> CardFile:
    """The file of a row."""
    return CardFile(content=bytes(row.content), carrier=row.carrier, source=row.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardChange(Change):
    """One change of a card, or one import that waits."""

    name: str
    action: Action
    sha256: str
    """Of the card's file."""
    grants: Grants
    """Those of the card after the change."""


def record_card_revision(
    name: str, file: models.CardFile, *, action: Action, grants: Grants, by: Actor
) -> int:
    """Write down one change, in the transaction that makes it; the number it got."""
    number = _revisions.next_number(name=name)
    return _revisions.write(
        number, action=action, by=by, name=name, file=file, grants=grants_text(grants)
    )


def newest_number(name: str) -> int:
    """The newest revision number of this name, imports counted; 0 where there never was one."""
    return _revisions.newest_number(name=name)


def last_changed_by(name: str) -> str:
    """Who made the newest change of a card."""
    return _revisions.last_changed_by(name=name)


def changes(name: str) -> tuple[CardChange, ...]:
    """All changes of a card and all imports, oldest first; also of a card that was removed."""
    return tuple(_change(row) for row in _rows(name))


def waiting(name: str) -> tuple[CardChange, ...]:
    """The imports that nobody has answered, oldest first."""
    return tuple(_change(row) for row in _without_texts(_revisions.waiting(name)))


def names() -> tuple[str, ...]:
    """All names that cards have or had, those of imports included, in alphabetical order."""
    return _revisions.names()


def is_known(name: str, file_sha256: str) -> bool:
    """True if this file was ever imported under this name, or was in force."""
    return _revisions.of(name=name).filter(file__sha256=file_sha256).exists()


def waiting_names() -> tuple[str, ...]:
    """The names under which imports wait, in alphabetical order."""
    return _revisions.waiting_names()


def count_waiting() -> int:
    """How many imports wait, of all names."""
    return _revisions.count_waiting()


def refuse_unread(name: str, newest_seen: int | None) -> None:
    """Raise EditConflictError if a card was changed, or imported, since this revision."""
    _revisions.refuse_stale(f"card '{name}'", newest_seen, name=name)


def refuse_too_many(before: Sequence[str], *, most: int) -> None:
    """StoreError where more than `most` imports wait; `before` are the names that did."""
    _revisions.refuse_too_many(before, most=most)


def revision_row(name: str, number: int) -> Any:
    """The row of one revision; for the store alone. NotStoredError: there is no such number."""
    return _revisions.numbered(_rows(name), number, what=f"card '{name}'")


def revision(name: str, number: int) -> tuple[CardChange, CardFile]:
    """One change and the card's file then; NotStoredError: there is no such number."""
    row = revision_row(name, number)
    return _change(row), read_file(row.file)


def in_force_then(name: str, number: int) -> tuple[CardChange, CardFile]:
    """The same of a revision that was in force, which alone can be gone back to.

    NotStoredError: there is no such number. StoreError: the revision never was in force.
    """
    then, file = revision(name, number)
    if then.action not in IN_FORCE:
        raise StoreError(
            f"revision {number} of card '{name}' was {then.action} and never in force;"
            " only a revision that was can be gone back to"
        )
    return then, file


def who_gave(changes: Iterable[CardChange]) -> dict[Grant, CardChange]:
    """The change that gave each grant the card has now, of all its changes, oldest first."""
    return importing.who_gave(changes, in_force=IN_FORCE)


def _rows(name: str) -> QuerySet:
    return _without_texts(_revisions.of(name=name))


def _without_texts(rows: QuerySet) -> QuerySet:
    return rows.select_related("file").defer("file__content", "file__source")


def _change(row: models.CardRevision) -> CardChange:
    return value_of(CardChange, row, sha256=row.file.sha256, grants=grants_from(row.grants))
