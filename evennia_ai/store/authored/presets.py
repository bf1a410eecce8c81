"""Store presets: imports, the prompts that a builder switched on or off, and their assignments.

If several scopes of an NPC have a preset, the narrowest one counts, as with components.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EditConflictError
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.prompt.components import NO_GRANTS, SCOPE_RANK, Grants, Scope
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.files import check_file, json_file, read_text, store_file
from evennia_ai.store.authored.life_cycle import ImportedKind, grants_from, grants_text
from evennia_ai.store.core.snapshots import Snapshot, Snapshots, changing


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPreset:
    """A stored preset: the JSON text of its file, its grants, and its switched prompts."""

    name: str
    source: str = field(compare=False)
    """The JSON text of the file, without secrets."""
    sha256: str
    """The hash of the text."""
    revision: int
    grants: Grants
    switches: tuple[tuple[str, bool], ...] = ()
    """The prompts that a builder switched, by identifier: True for on, False for off."""


class PresetKind(ImportedKind[StoredPreset]):
    """The kind "preset". Each scope has at most one preset.

    When the file is replaced, its switched prompts are reset.
    """

    name = "preset"
    state = "presets"
    table = models.Preset
    scopes = tuple(kind for kind in SCOPE_RANK if kind != "game")
    most_waiting = 100

    def to_row(self, value: StoredPreset) -> dict[str, Any]:
        return {
            "file": self.file_of(value),
            "grants": grants_text(value.grants),
            "switches": canonical_json(dict(value.switches)),
        }

    def from_row(self, row: Any) -> StoredPreset:
        return StoredPreset(
            name=row.name,
            source=read_text(row.file.sha256),
            sha256=row.file.sha256,
            revision=row.revision,
            grants=grants_from(row.grants),
            switches=_in_order(json.loads(row.switches)),
        )

    def to_json(self, value: StoredPreset) -> dict[str, Any]:
        return {"grants": grants_text(value.grants), "switches": dict(value.switches)}

    def from_json(self, fields: Mapping[str, Any], row: models.Revision) -> StoredPreset:
        assert row.file is not None
        return StoredPreset(
            name=row.key,
            source="",
            sha256=row.file.sha256,
            revision=row.number,
            grants=grants_from(fields["grants"]),
            switches=_in_order(fields["switches"]),
        )

    def refresh(self, key: str, scope: Scope) -> None:
        preset_or_none.note_change(key)

    def refresh_assigned(self, scope: Scope | None) -> None:
        assignments.note_any_change()


PRESETS: Final = PresetKind()


def import_preset(name: str, source: str, *, by: Actor) -> int | None:
    """Store a preset as an import that waits for approval (`ImportedKind.import_file`).

    Args:
        source: The JSON text without secrets.

    Raises:
        FormatError: the text is not a strict JSON object, or it is too long.
    """
    called = PRESETS.called(name)
    with changing(PRESETS.state, f"importing {called}", by=by):
        file = json_file(source)
        digest = check_file(
            file,
            what=called,
            most=conf().max_source_characters,
            setting="EVENNIA_AI_MAX_SOURCE_CHARACTERS",
        )
        store_file(file, digest)
        preset = StoredPreset(name=name, source=source, sha256=digest, revision=0, grants=NO_GRANTS)
        return PRESETS.import_file(name, preset, by=by)


def switch(preset: StoredPreset, switches: Mapping[str, bool], *, by: Actor) -> StoredPreset:
    """Switch prompts of a preset on or off, by their identifiers.

    Raises:
        EditConflictError: the preset was changed or removed meanwhile.
    """
    name = preset.name
    with changing(PRESETS.state, f"switching prompts of {PRESETS.called(name)}", by=by):
        now = PRESETS.current(name)
        if now != preset:
            newest, by_whom = PRESETS.newest_number(name), PRESETS.last_changed_by(name)
            raise EditConflictError(PRESETS.called(name), preset.revision, newest, by_whom)
        after = _in_order({**dict(preset.switches), **switches})
        if after == preset.switches:
            return preset
        return PRESETS.save(name, replace(preset, switches=after), action="switched", by=by)


def _in_order(switches: Mapping[str, bool]) -> tuple[tuple[str, bool], ...]:
    return tuple(sorted(switches.items()))


preset_or_none: Final = Snapshots(PRESETS.state, PRESETS.current)
"""Return the preset with this name, or None.

Every call returns the same object until it is changed.
"""


def get_preset(name: str) -> StoredPreset:
    """Return the preset with this name.

    Raises:
        NotStoredError: there is none; the message lists the names that exist.
    """
    return preset_or_none(name) or PRESETS.existing(name)


def preset_for(scopes: Iterable[Scope]) -> StoredPreset | None:
    """Return the preset of the narrowest of these scopes that has one, or None.

    No query is made if everything is in memory.
    """
    known = assignments()
    found = [scope for scope in scopes if scope in known] if known else []
    if not found:
        return None
    narrowest = max(found, key=lambda scope: SCOPE_RANK[scope.kind])
    return preset_or_none(known[narrowest])


def _load_assignments() -> Mapping[Scope, str]:
    rows = models.Assignment.objects.filter(kind=PRESETS.name)
    found = rows.values_list("scope_kind", "scope_ref", "key")
    return {Scope(kind=kind, ref=ref): name for kind, ref, name in found}


assignments: Final = Snapshot(PRESETS.state, _load_assignments)
"""Return the name of the preset of each scope that has one.

Every call returns the same object until an assignment is changed.
"""
