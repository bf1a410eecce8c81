"""What builders write for a preset, and what the command `preset` shows.

`<name>` and `<name>/<number>` are read; the list, one preset's state, imports and answers are told.
"""

from collections.abc import Sequence
from typing import Final

from evennia_ai.commands.base import StrictCommand, and_more, counted
from evennia_ai.commands.naming import scope_in_words
from evennia_ai.commands.setup.imported import (
    MOST_WAITING,
    Imported,
    changed_in_words,
    given_in_words,
    grants_in_words,
    import_in_words,
    may_in_words,
)
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, pad_text, wrap_text
from evennia_ai.store.authored import preset_revisions as log
from evennia_ai.store.authored import presets as store
from evennia_ai.store.authored.preset_revisions import PresetChange
from evennia_ai.store.authored.presets import StoredPreset, assigned_to, known_name

PRESETS: Final[Imported[PresetChange]] = Imported(
    what="preset",
    known_name=known_name,
    names=log.names,
    waiting=log.waiting,
    newest_number=log.newest_number,
    change=lambda name, number: log.revision(name, number)[0],
)

_MOST_PRESETS: Final = 100
_MOST_PLACES: Final = 10
_NAME_COLUMNS: Final = 28


def preset_named(wanted: str) -> StoredPreset:
    """The preset in force of this name; CommandError says where one only waits."""
    name = known_name(wanted)
    if store.preset_or_none(name) is None:
        PRESETS.refuse_absent(name)
    return store.get_preset(name)


def preset_typed(command: StrictCommand, usage: str) -> StoredPreset:
    """The preset in force that stands left of "="."""
    return preset_named(PRESETS.plain_name(command.wanted(usage), usage))


def revision_named(text: str) -> StoredPreset:
    """The preset as it was in force that `<name>[/<number>]` means: without one, as it is now."""
    named = PRESETS.numbered(text)
    if named.number is not None:
        return store.preset_then(named.name, named.number)
    return preset_named(named.name)


def listed() -> list[str]:
    """All presets, those that only wait among them."""
    in_force, waiting = store.preset_names(), log.waiting_names()
    names = sorted({*in_force, *waiting})
    if not names:
        return ["There are no presets yet; preset/import reads one from a file."]
    titles = f"{pad_text('preset', _NAME_COLUMNS)}  {pad_text('grants', 20)}  counts in"
    lines = [f"{'revision':>8}  {titles}"]
    for name in names[:_MOST_PRESETS]:
        lines.append(clip_text(_row(name), WIDTH))
        lines += (
            [f"{'':10}{line}" for line in PRESETS.waiting_lines(name)] if name in waiting else []
        )
    rest = and_more(names, most=_MOST_PRESETS, more=f"{'':10}and {{}} more")
    return [*lines, *rest[_MOST_PRESETS:]]


def preset_state(preset: StoredPreset) -> list[str]:
    """One preset in force: who approved it, who gave each grant, where it counts, what waits."""
    changes = log.changes(preset.name)
    given = log.who_gave(changes)
    lines = [f"Preset {escape_controls(preset.name)}, revision {preset.revision}"]
    lines += [f"  {changed_in_words(change)}" for change in changes if _is_now(change, preset)]
    lines.append(f"  {counts_in_words(preset.name)}")
    lines += [f"  may: {grant}, {given_in_words(change)}" for grant, change in given.items()]
    if not given:
        lines.append("  may nothing more than stand inside the history, as a user's")
    if preset.switches:
        lines.append(f"  {counted(len(preset.switches), 'prompt')} switched in the game")
    waiting = (f"  {line}" for line in PRESETS.waiting_lines(preset.name))
    return [clip_text(line, WIDTH) for line in (*lines, *waiting)]


def to_approve(change: PresetChange) -> list[str]:
    """How an import is put in force, and what the preset in force has that it would not."""
    lines = ["", f"To put it in force: preset/approve {change.name}/{change.number} [= <grants>]"]
    preset = store.preset_or_none(change.name)
    if preset is not None and (lost := _of_its_own(preset)):
        lines += wrap_text(f"Revision {preset.revision} has {lost}; none is carried over.", WIDTH)
    return lines


def approved(
    preset: StoredPreset,
    old: StoredPreset | None,
    change: PresetChange,
    others: Sequence[PresetChange],
) -> list[str]:
    """What an approval did."""
    whose = f"import {change.number} of {escape_controls(change.changed_by)}"
    may = may_in_words(preset.grants)
    told = [f"Preset {preset.name} is in force, revision {preset.revision}: {whose}, {may}."]
    lost = old.grants - preset.grants if old is not None else frozenset()
    if lost and old is not None:
        told.append(
            f"Not carried over from revision {old.revision}: {grants_in_words(lost)};"
            f" preset/grant {preset.name} = {grants_in_words(lost)} gives that again."
        )
    if old is not None and old.switches:
        told.append(
            f"What was switched in revision {old.revision} was another file's; this one is as it"
            f" was imported. preset {preset.name} lists its prompts."
        )
    if others:
        named = "; ".join(import_in_words(one) for one in others[-MOST_WAITING:])
        told.append(f"What else waited was answered by this: {named}.")
    if assigned_to(preset.name):
        told.append(f"It counts from the next turn on in {places_in_words(preset.name)}.")
    else:
        told.append(f"It counts nowhere yet: preset/assign {preset.name} = <place>.")
    return [line for one in told for line in wrap_text(one, WIDTH)]


def counts_in_words(name: str) -> str:
    """Where a preset counts, as a clause."""
    return f"counts in {places_in_words(name)}" if assigned_to(name) else "counts nowhere"


def places_in_words(name: str) -> str:
    """The places in which a preset counts."""
    scopes = assigned_to(name)
    told = [scope_in_words(scope) for scope in scopes[:_MOST_PLACES]]
    more = f" and {len(scopes) - _MOST_PLACES} more" if len(scopes) > _MOST_PLACES else ""
    return ", ".join(told) + more if told else "nowhere"


def _of_its_own(preset: StoredPreset) -> str:
    """What a preset was given in the game, in words; "" for nothing."""
    grants = f"grants ({grants_in_words(preset.grants)})" if preset.grants else ""
    switches = f"{counted(len(preset.switches), 'switch', 'switches')}" if preset.switches else ""
    return " and ".join(one for one in (grants, switches) if one)


def _row(name: str) -> str:
    preset = store.preset_or_none(name)
    if preset is None:
        return f"{'-':>8}  {pad_text(escape_controls(name), _NAME_COLUMNS)}  not in force"
    grants = "all" if preset.grants == ALL_GRANTS else grants_in_words(preset.grants)
    named = f"{pad_text(escape_controls(name), _NAME_COLUMNS)}  {pad_text(grants, 20)}"
    return f"{preset.revision:8}  {named}  {places_in_words(name)}"


def _is_now(change: PresetChange, preset: StoredPreset) -> bool:
    """True if the change is what made the preset what it is, or put its file in force."""
    return change.number == preset.revision or (
        change.action == "approved" and change.sha256 == preset.sha256
    )
