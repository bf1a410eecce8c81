"""Import and export of presets of a game, for the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evennia_ai.cli.game import machine_owner
from evennia_ai.cli.output import write_file, write_lines
from evennia_ai.cli.presets import read_reported, write_report
from evennia_ai.engine.errors import ComponentValueError, FormatError
from evennia_ai.engine.prompt.components import GAME, NO_GRANTS, Grants, in_order
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.formats.presets.changes import list_unwritable
from evennia_ai.formats.presets.export import dump_preset, stored_text
from evennia_ai.formats.presets.mapping import preset_components
from evennia_ai.formats.presets.preset import KIND
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored import presets as store
from evennia_ai.store.authored.components import registry
from evennia_ai.store.authored.presets import PRESETS, StoredPreset


@dataclass(frozen=True, slots=True, kw_only=True)
class _Taken:
    """The result of an import: `number` is its revision, `text` says what to do next."""

    name: str
    number: int
    state: Literal["waiting", "approved"]
    grants: Grants
    text: str


def import_preset(
    path: Path,
    shown: Path,
    conf: Conf,
    *,
    name: str | None,
    grants: Grants | None,
    as_json: bool,
) -> int:
    """Store the preset as a waiting import, or approve it if `grants` is not None.

    `shown` is the path as it was typed.
    """
    called = _name_for(name or path.stem)
    preset, report = read_reported(
        path,
        name=called,
        shown=shown,
        grants=NO_GRANTS if grants is None else grants,
        after_depth=conf.post_history_depth,
    )
    taken = _taken_in(called, stored_text(preset), grants)
    stored = {
        "preset": taken.name,
        "number": taken.number,
        "state": taken.state,
        "grants": list(in_order(taken.grants)),
    }
    write_report(report, stored=stored, end=taken.text, as_json=as_json)
    return 0


def export_preset(name: str, path: Path, shown: Path, *, force: bool, number: int | None) -> int:
    """Write a preset, by default the current one. A file is overwritten only with `force`.

    The current one is written with the game's components that replace its prompts.
    """
    name = PRESETS.known_name(name)
    stored = store.get_preset(name) if number is None else PRESETS.then(name, number)
    preset = parsed_preset(stored)
    keys = {one.key for one in preset_components(preset, grants=stored.grants)}
    own = [one for one in registry() if one.scope == GAME and not one.is_static]
    changes = [one for one in own if number is None and one.key in keys]
    text = dump_preset(preset, changes, grants=stored.grants)
    write_file(path, text.encode(), kind=KIND, force=force)
    told = f"{shown}: {name}, revision {stored.revision}"
    if changes:
        told += f", with components of the game: {', '.join(one.key for one in changes)}"
    write_lines(escape_controls(line) for line in (*list_unwritable(changes), told))
    return 0


def _taken_in(name: str, source: str, grants: Grants | None) -> _Taken:
    """Store a preset's JSON: as a waiting import, or as approved if `grants` is not None."""
    number = store.import_preset(name, source, by=machine_owner())
    if number is None:
        known = store.get_preset(name)
        if grants is None or grants == known.grants:
            return _in_force(known, f"The same file is preset {name}, and nothing was changed.")
        return _regranted(known, grants)
    if grants is None:
        return _waiting(name, number)
    approved = PRESETS.approve(name, number, grants=grants, by=machine_owner())
    return _in_force(
        approved,
        f"Preset {name}, revision {approved.revision}, is approved. To use it somewhere, in the"
        f" game: preset/assign {name} = <place>",
    )


def _regranted(known: StoredPreset, grants: Grants) -> _Taken:
    """Give the current preset exactly these grants."""
    after = known
    if grants - known.grants:
        after = PRESETS.grant(known.name, grants, by=machine_owner())
    if known.grants - grants:
        after = PRESETS.revoke(known.name, known.grants - grants, by=machine_owner())
    return _in_force(after, f"The same file is preset {known.name}; its grants were changed.")


def _name_for(wanted: str) -> str:
    """Return the name for a preset. FormatError if the game's commands could not take the name."""
    try:
        return PRESETS.known_name(PRESETS.typeable_name(wanted))
    except ComponentValueError as error:
        raise FormatError(KIND, f"{error}; give it another with --name") from error


def _waiting(name: str, number: int) -> _Taken:
    return _Taken(
        name=name,
        number=number,
        state="waiting",
        grants=NO_GRANTS,
        text=(
            f"Stored as preset {name}, revision {number}. It waits for approval, so it is not used"
            f" yet. To approve it: preset/approve {name}/{number} in the game, or this command"
            " with --approve. Name the grants that it should have."
        ),
    )


def _in_force(preset: StoredPreset, text: str) -> _Taken:
    return _Taken(
        name=preset.name,
        number=preset.revision,
        state="approved",
        grants=preset.grants,
        text=text,
    )
