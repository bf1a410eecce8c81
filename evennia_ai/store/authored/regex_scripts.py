"""Store the game's own regex scripts, and edits of the scripts of presets.

The scripts of cards and presets are in their files. The game's scripts run before them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import ComponentValueError, EditConflictError, StoreError
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.formats.regex_scripts import MOST_CHARACTERS, MOST_SCRIPTS
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.files import check_file, json_file, store_file
from evennia_ai.store.authored.life_cycle import Kind
from evennia_ai.store.authored.presets import PRESETS, StoredPreset
from evennia_ai.store.core.authoring import checked_name
from evennia_ai.store.core.snapshots import Snapshot, changing


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScript:
    """A regex script of the game."""

    name: str
    position: int
    """The place of the script in the order in which scripts run."""
    source: str
    """The JSON text of the script, as imported or as last edited."""
    revision: int = 0

    @property
    def raw(self) -> dict[str, Any]:
        """The JSON object of the script."""
        value: dict[str, Any] = json.loads(self.source)
        return value


class ScriptKind(Kind[StoredScript]):
    """The kind "regex script". The game's scripts have names and an order."""

    name = "regex script"
    state = "scripts"
    table = models.RegexScript
    identity = ("name",)

    def from_row(self, row: Any) -> StoredScript:
        return StoredScript(
            name=row.name, position=row.position, source=row.source, revision=row.revision
        )

    def to_json(self, value: StoredScript) -> dict[str, Any]:
        return {"position": value.position, "source": value.source}

    def from_json(self, fields: Mapping[str, Any], row: models.Revision) -> StoredScript:
        return StoredScript(name=row.key, revision=row.number, **fields)

    def refresh(self, key: str, scope: Scope) -> None:
        game_scripts.note_any_change()

    def check(
        self, old: StoredScript | None, new: StoredScript | None, *, doing: str, by: Actor
    ) -> None:
        if new is not None and len(new.source) > MOST_CHARACTERS:
            raise StoreError(f"{doing}: the script has more than {MOST_CHARACTERS:,} characters")


SCRIPTS: Final = ScriptKind()


def save_script(
    name: str,
    source: str,
    *,
    by: Actor,
    position: int | None = None,
    seen_revision: int | None = None,
) -> StoredScript:
    """Create a script of the game, or replace it. A new script runs after all others.

    Args:
        name: The name, by which builders call the script.
        source: The JSON text of the script.
        by: The person who saves the script.
        position: The place in the order; None keeps it.
        seen_revision: See `Kind.refuse_stale`.

    Raises:
        ComponentValueError: the name is not allowed.
        EditConflictError: somebody changed the script after `seen_revision`.
        StoreError: the game has too many scripts, or the script is too long.
    """
    checked_name(name, what=SCRIPTS.name)
    if "=" in name or "/" in name:
        raise ComponentValueError("name of the regex script", name, "a name without = and /")
    doing = f"saving {SCRIPTS.called(name)}"
    with changing(SCRIPTS.state, doing, by=by):
        old = SCRIPTS.current(name)
        SCRIPTS.refuse_stale(name, seen_revision, old)
        if old is None and len(SCRIPTS.list_keys()) >= MOST_SCRIPTS:
            raise StoreError(f"the game has {MOST_SCRIPTS} regex scripts already; remove one first")
        if old is not None:
            new = replace(old, source=source)
        else:
            last = models.RegexScript.objects.order_by("-position").first()
            new = StoredScript(name=name, position=last.position + 1 if last else 1, source=source)
        if position is not None:
            new = replace(new, position=position)
        if old is not None and SCRIPTS.is_same(old, new):
            return old
        SCRIPTS.check(old, new, doing=doing, by=by)
        return SCRIPTS.save(name, new, action="updated" if old else "created", by=by)


def edit_preset_file(preset: StoredPreset, source: str, *, by: Actor) -> StoredPreset:
    """Replace the file of a preset by an edited one. Its grants and switches stay.

    Args:
        preset: The preset that the builder edited.
        source: The JSON text of the edited file.
        by: The person who edits the preset.

    Raises:
        EditConflictError: the preset was changed meanwhile.
        FormatError: the text is not a strict JSON object, or it is too long.
    """
    name, called = preset.name, PRESETS.called(preset.name)
    with changing(PRESETS.state, f"editing {called}", by=by):
        now = PRESETS.current(name)
        if now != preset:
            newest, by_whom = PRESETS.newest_number(name), PRESETS.last_changed_by(name)
            raise EditConflictError(called, preset.revision, newest, by_whom)
        file = json_file(source)
        digest = check_file(
            file,
            what=called,
            most=conf().max_source_characters,
            setting="EVENNIA_AI_MAX_SOURCE_CHARACTERS",
        )
        if digest == preset.sha256:
            return preset
        store_file(file, digest)
        edited = replace(preset, source=source, sha256=digest)
        return PRESETS.save(name, edited, action="updated", by=by)


def _load() -> Sequence[StoredScript]:
    rows = models.RegexScript.objects.order_by("position", "name")
    return tuple(SCRIPTS.from_row(row) for row in rows)


game_scripts: Final = Snapshot(SCRIPTS.state, _load)
"""Return the game's regex scripts in their order.

Every call returns the same object until a script is changed.
"""


_HOLDERS: Final[Mapping[str, Any]] = {"card": models.Card, "preset": models.Preset}


def names_with_scripts(kind: str, *, most: int) -> tuple[str, ...]:
    """Return the names of cards or presets whose files have a list of regex scripts.

    The list may be empty.
    """
    rows = _HOLDERS[kind].objects.filter(file__source__contains='"regex_scripts"')
    return tuple(rows.order_by("name").values_list("name", flat=True)[:most])
