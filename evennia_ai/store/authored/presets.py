"""Presets that are in force: what they were granted, what is switched in them, where they count.

An import waits until somebody approves it, grant by grant; what an earlier file was granted, and
what was switched in it, is not carried over to another one. Every change is a revision, a switch
too, and a revision can be gone back to. Of the scopes that apply to an NPC the narrowest that has a
preset decides, as with components.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EditConflictError, NotStoredError, StoreError
from evennia_ai.engine.prompt.components import NO_GRANTS, SCOPE_RANK, Grants, Scope
from evennia_ai.store.authored import preset_revisions as log
from evennia_ai.store.authored.preset_revisions import Action, Switches, kept_file
from evennia_ai.store.core.authoring import check_scope, checked_name
from evennia_ai.store.core.importing import grants_from, grants_text, in_known_case, typeable
from evennia_ai.store.core.snapshots import PRESETS, Snapshot, Snapshots, changing, value_of

MOST_WAITING: Final = 100
"""Imports that may wait at once, in the whole game."""

# The scopes that name something and may have a preset: all of components but the game.
_NAMED_KINDS: Final = tuple(kind for kind in SCOPE_RANK if kind != "game")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPreset:
    """A preset in force: the JSON text of its file, what it may do, and what is switched in it."""

    name: str
    source: str = field(compare=False)
    """Without secrets; `sha256` tells it from others."""
    sha256: str
    revision: int
    grants: Grants
    switches: tuple[tuple[str, bool], ...] = ()
    """Each prompt that was switched in the game, by its identifier, and whether it is on."""


def import_preset(name: str, source: str, *, by: Actor) -> int | None:
    """Let a preset's JSON wait under `name` until it is answered; the number of the import.

    `source` has no secrets any more. One that waits already keeps its number; None where it is in
    force and nothing waits. FormatError: it is no strict JSON object. StoreError: too many wait.
    """
    checked_name(name, what="preset")
    with changing(PRESETS, f"importing preset '{name}'", by=by):
        before = log.waiting_names()
        file = kept_file(source, what=f"preset '{name}'")
        number = _waiting_import(name, file, by=by)
        log.refuse_too_many(before, most=MOST_WAITING)
        return number


def approve(
    name: str, number: int, *, grants: Grants, by: Actor, newest_seen: int | None = None
) -> StoredPreset:
    """Put an import in force with these grants; it answers all imports that wait.

    NotStoredError: there is no such import. StoreError: the revision is no import that waits.
    EditConflictError: another import came after the revision `newest_seen`, which would be
    answered unread.
    """
    with changing(PRESETS, f"approving preset '{name}'", by=by):
        log.refuse_unread(name, newest_seen)
        row = log.revision_row(name, number)
        if all(number != one.number for one in log.waiting(name)):
            raise StoreError(f"revision {number} of preset '{name}' is no import that waits")
        return _put(name, row.file, action="approved", grants=grants, switches={}, by=by)


def reject(name: str, *, by: Actor, newest_seen: int | None = None) -> int:
    """Let no import of this name wait any longer; how many did.

    EditConflictError: another import came after the revision `newest_seen`.
    """
    with changing(PRESETS, f"rejecting imports of preset '{name}'", by=by):
        log.refuse_unread(name, newest_seen)
        imports = log.waiting(name)
        if imports:
            row = log.revision_row(name, imports[-1].number)
            log.record_preset_revision(
                name, row.file, action="rejected", grants=NO_GRANTS, switches={}, by=by
            )
    return len(imports)


def grant(name: str, grants: Grants, *, by: Actor) -> StoredPreset:
    """Give a preset in force more grants; those it has already change nothing."""
    with changing(PRESETS, f"granting to preset '{name}'", by=by):
        preset = _in_force(name)
        return _regranted(preset, preset.grants | grants, action="granted", by=by)


def revoke(name: str, grants: Grants, *, by: Actor) -> StoredPreset:
    """Take grants from a preset in force; those it has not change nothing."""
    with changing(PRESETS, f"revoking grants of preset '{name}'", by=by):
        preset = _in_force(name)
        return _regranted(preset, preset.grants - grants, action="revoked", by=by)


def switch(preset: StoredPreset, switches: Switches, *, by: Actor) -> StoredPreset:
    """Let prompts of a preset, by their identifiers, be on or off, and leave all others.

    The same again changes nothing. EditConflictError: `preset` is not what is in force any more.
    """
    with changing(PRESETS, f"switching prompts of preset '{preset.name}'", by=by):
        current = _load_preset(preset.name)  # from its rows: another process may have changed it
        if current != preset:
            raise EditConflictError(
                f"preset '{preset.name}'",
                preset.revision,
                log.newest_number(preset.name),
                log.last_changed_by(preset.name),
            )
        after = {**dict(preset.switches), **switches}
        if after == dict(preset.switches):
            return preset
        file = models.Preset.objects.select_related("file").get(name=preset.name).file
        return _put(
            preset.name, file, action="switched", grants=preset.grants, switches=after, by=by
        )


def revert(name: str, number: int, *, by: Actor, seen_revision: int | None = None) -> StoredPreset:
    """Put file, grants and switches of an earlier revision in force again.

    Errors as `preset_revisions.in_force_then`. EditConflictError: another revision is in force than
    `seen_revision`; 0 is none.
    """
    with changing(PRESETS, f"reverting preset '{name}'", by=by):
        _refuse_stale(name, seen_revision)
        then, _ = log.in_force_then(name, number)
        file = log.revision_row(name, number).file
        return _put(
            name, file, action="reverted", grants=then.grants, switches=then.switches, by=by
        )


def remove(name: str, *, by: Actor, seen_revision: int | None = None) -> None:
    """Let a preset be in force no longer; its revisions stay, and can be gone back to.

    StoreError: it is assigned somewhere. EditConflictError: it was changed since
    `seen_revision`.
    """
    with changing(PRESETS, f"removing preset '{name}'", by=by):
        _refuse_stale(name, seen_revision)
        preset = _in_force(name)
        if scopes := assigned_to(name):
            named = ", ".join(str(scope) for scope in scopes[:10])
            raise StoreError(f"preset '{name}' is assigned to {named}; take it from there first")
        row = models.Preset.objects.get(name=name)
        log.record_preset_revision(
            name,
            row.file,
            action="removed",
            grants=preset.grants,
            switches=dict(preset.switches),
            by=by,
        )
        row.delete()
        preset_or_none.written(name)


def get_preset(name: str) -> StoredPreset:
    """The preset of this name; NotStoredError names those there are."""
    return _found(name, preset_or_none(name))


def preset_then(name: str, number: int) -> StoredPreset:
    """A preset as it was in force at a revision; errors as `preset_revisions.in_force_then`."""
    then, source = log.in_force_then(name, number)
    return StoredPreset(
        name=name,
        source=source,
        sha256=then.sha256,
        revision=number,
        grants=then.grants,
        switches=_in_order(then.switches),
    )


def preset_names() -> tuple[str, ...]:
    """The names of all presets in force, in alphabetical order."""
    return tuple(models.Preset.objects.order_by("name").values_list("name", flat=True))


def assign(name: str, scope: Scope, *, by: Actor) -> StoredPreset:
    """Let a preset count in a scope, in place of the one that did.

    ComponentValueError: it is no scope of components.
    """
    check_scope(scope, kinds=_NAMED_KINDS)
    with changing(PRESETS, f"assigning preset '{name}'", by=by):
        preset = get_preset(name)
        models.PresetAssignment.objects.update_or_create(
            scope_kind=scope.kind,
            scope_ref=scope.ref,
            defaults={
                "preset": models.Preset.objects.get(name=name),
                "assigned_by": by.name,
                "assigned_at": time.time(),
            },
        )
        assignments.all_written()
    return preset


def unassign(scope: Scope, *, by: Actor) -> bool:
    """Let no preset count in a scope; whether one did."""
    with changing(PRESETS, f"taking the preset from {scope} for {by}", by=by):
        rows = models.PresetAssignment.objects.filter(scope_kind=scope.kind, scope_ref=scope.ref)
        removed, _ = rows.delete()
        assignments.all_written()
    return removed > 0


def assigned_to(name: str) -> tuple[Scope, ...]:
    """The scopes in which a preset counts, from wide to narrow."""
    scopes = (scope for scope, assigned in _load_assignments().items() if assigned == name)
    return tuple(sorted(scopes, key=lambda scope: (SCOPE_RANK[scope.kind], scope.ref)))


def preset_for(scopes: Iterable[Scope]) -> StoredPreset | None:
    """The preset of the narrowest of these scopes that has one; warm, this makes no query."""
    known = assignments()
    found = [scope for scope in scopes if scope in known] if known else []
    if not found:
        return None
    narrowest = max(found, key=lambda scope: SCOPE_RANK[scope.kind])
    return preset_or_none(known[narrowest])


def typeable_name(name: str) -> str:
    """`name` in one line; ComponentValueError where no command could be told it."""
    return typeable(name, what="preset")


def known_name(wanted: str) -> str:
    """`wanted` in the case in which a preset has that name, or had it; without one, as it is.

    A preset in force goes before one that only waits or was removed.
    """
    return in_known_case(wanted, preset_names(), log.names())


def _refuse_stale(name: str, seen_revision: int | None) -> None:
    """Raise EditConflictError if another revision is in force than `seen_revision`; 0 is none."""
    row = models.Preset.objects.filter(name=name).first()
    if seen_revision not in (None, row.revision if row else 0):
        raise EditConflictError(
            f"preset '{name}'", seen_revision, log.newest_number(name), log.last_changed_by(name)
        )


def _waiting_import(name: str, file: models.PresetFile, *, by: Actor) -> int | None:
    """Let a file wait, in the transaction that wants it."""
    preset = models.Preset.objects.filter(name=name).first()
    imports = log.waiting(name)
    if preset is not None and preset.file_id == file.pk and not imports:
        return None
    same = [one.number for one in imports if one.sha256 == file.sha256]
    if same:
        return same[-1]
    return log.record_preset_revision(
        name, file, action="imported", grants=NO_GRANTS, switches={}, by=by
    )


def _regranted(preset: StoredPreset, grants: Grants, *, action: Action, by: Actor) -> StoredPreset:
    if grants == preset.grants:
        return preset
    file = models.Preset.objects.select_related("file").get(name=preset.name).file
    switches = dict(preset.switches)
    return _put(preset.name, file, action=action, grants=grants, switches=switches, by=by)


def _put(
    name: str,
    file: models.PresetFile,
    *,
    action: Action,
    grants: Grants,
    switches: Switches,
    by: Actor,
) -> StoredPreset:
    """Put a file with these grants and switches in force, in the transaction that wants it."""
    number = log.record_preset_revision(
        name, file, action=action, grants=grants, switches=switches, by=by
    )
    models.Preset.objects.update_or_create(
        name=name,
        defaults={
            "file": file,
            "grants": grants_text(grants),
            "switches": log.switches_text(switches),
            "revision": number,
        },
    )
    preset_or_none.written(name)
    return get_preset(name)


def _in_force(name: str) -> StoredPreset:
    """The preset as its rows are now, for a change that starts from it."""
    return _found(name, _load_preset(name))


def _found(name: str, preset: StoredPreset | None) -> StoredPreset:
    if preset is None:
        raise NotStoredError("preset", name, preset_names())
    return preset


def _in_order(switches: Switches) -> tuple[tuple[str, bool], ...]:
    return tuple(sorted(switches.items()))


def _load_preset(name: str) -> StoredPreset | None:
    row = models.Preset.objects.select_related("file").filter(name=name).first()
    if row is None:
        return None
    return value_of(
        StoredPreset,
        row,
        source=row.file.source,
        sha256=row.file.sha256,
        grants=grants_from(row.grants),
        switches=_in_order(log.switches_from(row.switches)),
    )


preset_or_none: Final = Snapshots(PRESETS, _load_preset)
"""The preset of this name, None where none is in force."""


def _load_assignments() -> Mapping[Scope, str]:
    rows = models.PresetAssignment.objects.values_list("scope_kind", "scope_ref", "preset__name")
    return {Scope(kind=kind, ref=ref): name for kind, ref, name in rows}


assignments: Final = Snapshot(PRESETS, _load_assignments)
"""The name of the preset of each scope that has one; the same object until it is changed."""
