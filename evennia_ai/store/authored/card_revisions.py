"""Revisions of cards: who imported, approved, granted and reverted what, and when; and their files.

An import is written down here alone: it waits, and changes nothing until it is approved. The bytes
of a file are kept as they were given, each once.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from django.db.models import Exists, Max, OuterRef, QuerySet

from evennia_ai import models
from evennia_ai.cards.limits import as_text
from evennia_ai.cards.loading import CardImport
from evennia_ai.errors import StoreError
from evennia_ai.prompt.components import Grant, Grants, in_order
from evennia_ai.settings.conf import conf
from evennia_ai.store.core.authoring import Change, Revisions, checked_source
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
# What answers the imports before it.
_ANSWERS: Final = ("approved", "rejected", "removed")
_revisions: Final = Revisions(models.CardRevision)


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
        as_text(content, where="card")
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
    name: str, file: models.CardFile, *, action: Action, grants: Grants, by: str
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
    answered = _rows(name).filter(action__in=_ANSWERS).aggregate(newest=Max("number"))["newest"]
    rows = _rows(name).filter(action="imported", number__gt=answered or 0)
    return tuple(_change(row) for row in rows)


def names() -> tuple[str, ...]:
    """All names that cards have or had, those of imports included, in alphabetical order."""
    rows = models.CardRevision.objects.order_by("name").values_list("name", flat=True)
    return tuple(rows.distinct())


def is_known(name: str, file_sha256: str) -> bool:
    """Whether this file was ever imported under this name, or was in force."""
    return _revisions.of(name=name).filter(file__sha256=file_sha256).exists()


def waiting_names() -> tuple[str, ...]:
    """The names under which imports wait, in alphabetical order."""
    return tuple(sorted(set(_unanswered().values_list("name", flat=True))))


def count_waiting() -> int:
    """How many imports wait, of all names."""
    return int(_unanswered().count())


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
    given: dict[Grant, CardChange] = {}
    for change in changes:
        if change.action in IN_FORCE:
            given = {grant: given.get(grant, change) for grant in in_order(change.grants)}
    return given


def grants_text(grants: Grants) -> str:
    """Grants as a row has them."""
    return " ".join(in_order(grants))


def grants_from(text: str) -> Grants:
    """The grants a row has; one that is not known any more gives nothing."""
    return frozenset(in_order(frozenset(text.split())))  # type: ignore[arg-type]


def _unanswered() -> QuerySet:
    """The rows of all imports that nobody has answered."""
    answers = models.CardRevision.objects.filter(
        name=OuterRef("name"), action__in=_ANSWERS, number__gt=OuterRef("number")
    )
    return models.CardRevision.objects.filter(~Exists(answers), action="imported")


def _rows(name: str) -> QuerySet:
    rows = _revisions.of(name=name).select_related("file")
    return rows.defer("file__content", "file__source")


def _change(row: models.CardRevision) -> CardChange:
    return value_of(CardChange, row, sha256=row.file.sha256, grants=grants_from(row.grants))
