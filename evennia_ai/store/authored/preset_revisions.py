"""Revisions of presets: who imported, approved, switched and reverted what, and when; their files.

An import is written down here alone: it waits, and changes nothing until it is approved. The file
of a preset is kept once, as it was given but for its secrets; what was switched in the game stands
beside it, so that a switch costs a row and no file.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.db.models import QuerySet

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.prompt.components import Grant, Grants
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.core import importing
from evennia_ai.store.core.authoring import Change, checked_source
from evennia_ai.store.core.importing import Imports, grants_from, grants_text
from evennia_ai.store.core.snapshots import value_of

Action = Literal[
    "imported", "approved", "granted", "revoked", "switched", "reverted", "rejected", "removed"
]
# After these the preset is in force as the revision has it.
IN_FORCE: Final = ("approved", "granted", "revoked", "switched", "reverted")
_revisions: Final = Imports(models.PresetRevision)

Switches = Mapping[str, bool]
"""True if each prompt that was switched in the game is on, by its identifier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetChange(Change):
    """One change of a preset, or one import that waits."""

    name: str
    action: Action
    sha256: str
    """Of the preset's file."""
    grants: Grants
    """Those of the preset after the change."""
    switches: Switches
    """What was switched in the game by then."""


def kept_file(source: str, *, what: str) -> models.PresetFile:
    """The row of a preset's JSON without its secrets, made where there is none; for the store.

    FormatError: it is no strict JSON object, or longer than the limit.
    """
    most = conf().max_source_characters
    setting = "EVENNIA_AI_MAX_SOURCE_CHARACTERS"
    sha256 = checked_source(source, what=what, most=most, setting=setting)
    row, _ = models.PresetFile.objects.get_or_create(sha256=sha256, defaults={"source": source})
    return row


def record_preset_revision(
    name: str,
    file: models.PresetFile,
    *,
    action: Action,
    grants: Grants,
    switches: Switches,
    by: Actor,
) -> int:
    """Write down one change, in the transaction that makes it; the number it got."""
    return _revisions.write(
        _revisions.next_number(name=name),
        action=action,
        by=by,
        name=name,
        file=file,
        grants=grants_text(grants),
        switches=switches_text(switches),
    )


def newest_number(name: str) -> int:
    """The newest revision number of this name, imports counted; 0 where there never was one."""
    return _revisions.newest_number(name=name)


def last_changed_by(name: str) -> str:
    """Who made the newest change of a preset."""
    return _revisions.last_changed_by(name=name)


def changes(name: str) -> tuple[PresetChange, ...]:
    """All changes of a preset and all imports, oldest first; also of one that was removed."""
    return tuple(_change(row) for row in _rows(name))


def waiting(name: str) -> tuple[PresetChange, ...]:
    """The imports that nobody has answered, oldest first."""
    return tuple(_change(row) for row in _without_texts(_revisions.waiting(name)))


def names() -> tuple[str, ...]:
    """All names that presets have or had, those of imports included, in alphabetical order."""
    return _revisions.names()


def is_known(name: str, source_sha256: str) -> bool:
    """True if this JSON was ever imported under this name, or was in force."""
    return _revisions.of(name=name).filter(file__sha256=source_sha256).exists()


def waiting_names() -> tuple[str, ...]:
    """The names under which imports wait, in alphabetical order."""
    return _revisions.waiting_names()


def refuse_unread(name: str, newest_seen: int | None) -> None:
    """Raise EditConflictError if a preset was changed, or imported, since this revision."""
    _revisions.refuse_stale(f"preset '{name}'", newest_seen, name=name)


def refuse_too_many(before: Sequence[str], *, most: int) -> None:
    """StoreError where more than `most` imports wait; `before` are the names that did."""
    _revisions.refuse_too_many(before, most=most)


def revision_row(name: str, number: int) -> Any:
    """The row of one revision; for the store alone. NotStoredError: there is no such number."""
    return _revisions.numbered(_rows(name), number, what=f"preset '{name}'")


def revision(name: str, number: int) -> tuple[PresetChange, str]:
    """One change and the JSON of the file then; NotStoredError: there is no such number."""
    row = revision_row(name, number)
    return _change(row), row.file.source


def in_force_then(name: str, number: int) -> tuple[PresetChange, str]:
    """The same of a revision that was in force, which alone can be gone back to.

    NotStoredError: there is no such number. StoreError: the revision never was in force.
    """
    then, source = revision(name, number)
    if then.action not in IN_FORCE:
        raise StoreError(
            f"revision {number} of preset '{name}' was {then.action} and never in force;"
            " only a revision that was can be gone back to"
        )
    return then, source


def who_gave(changes: Iterable[PresetChange]) -> dict[Grant, PresetChange]:
    """The change that gave each grant the preset has now, of all its changes, oldest first."""
    return importing.who_gave(changes, in_force=IN_FORCE)


def switches_text(switches: Switches) -> str:
    """Switches as a row has them."""
    return canonical_json(dict(switches))


def switches_from(text: str) -> dict[str, bool]:
    """The switches a row has."""
    return dict(json.loads(text))


def _rows(name: str) -> QuerySet:
    return _without_texts(_revisions.of(name=name))


def _without_texts(rows: QuerySet) -> QuerySet:
    return rows.select_related("file").defer("file__source")


def _change(row: models.PresetRevision) -> PresetChange:
    return value_of(
        PresetChange,
        row,
        sha256=row.file.sha256,
        grants=grants_from(row.grants),
        switches=switches_from(row.switches),
    )
