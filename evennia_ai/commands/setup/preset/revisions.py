"""The switches of `preset` that tell what a preset was, go back to it, and end it."""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

from evennia_ai.commands.background_work import BackgroundWork, Steps, waits
from evennia_ai.commands.base import CommandError, Run, and_more
from evennia_ai.commands.naming import whole_number
from evennia_ai.commands.screens import diffed
from evennia_ai.commands.setup.imported import (
    changed_in_words,
    grants_in_words,
    import_in_words,
    may_in_words,
)
from evennia_ai.commands.setup.preset import shown
from evennia_ai.commands.setup.preset.files import preset_differences
from evennia_ai.commands.setup.preset.shown import PRESETS
from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.store.authored import preset_revisions as log
from evennia_ai.store.authored import presets as store
from evennia_ai.store.authored.preset_revisions import IN_FORCE, PresetChange
from evennia_ai.store.authored.presets import StoredPreset, known_name, preset_then

_MOST_SHOWN: Final = 50
_MOST_LINES: Final = 200


class PresetRevisions(BackgroundWork):
    """Everything about what a preset was before, and whether it is in force."""

    @waits
    def revisions(self) -> Steps:
        """Who changed a preset; with a number, what that revision changed."""
        usage = "preset/revisions <name> [= <number>]"
        name = PRESETS.plain_name(self.wanted(usage), usage)
        changes = log.changes(name)
        if not changes:
            raise NotStoredError("preset", name, store.preset_names())
        if self.rhs is None:
            self.show(_history(name, changes))
            return
        number = whole_number(self.rhs, what="revision")
        then, _ = log.revision(name, number)
        before = [one for one in changes if one.action in IN_FORCE and one.number < number]
        lines = [f"Revision {number} of preset {name}, {changed_in_words(then)}."]
        if then.action not in IN_FORCE:
            self.show([*lines, "It was never in force: preset/report tells what is in it."])
            return
        was = preset_then(name, before[-1].number) if before else None
        now = preset_then(name, number)
        told = yield self.worked(
            f"Comparing revisions of preset {name}", lambda _progress: _compared(was, now)
        )
        self.show(diffed([*lines, *told]))

    def revert(self) -> Run:
        """Put an earlier revision in force again, after a question."""
        text, value = self.both("preset/revert <name> = <number>")
        name, number = known_name(text), whole_number(value, what="revision")
        return self._revert_after_yes(preset_then(name, number))

    def _revert_after_yes(self, then: StoredPreset) -> Generator[str, Any, None]:
        name, number = then.name, then.revision
        preset = store.preset_or_none(name)
        is_same = preset is not None and _said(preset) == _said(then)
        changes = [] if is_same else _compared(preset, then)
        if not (yield from self.goes_back(f"preset {name}", number, changes=changes)):
            return
        seen = preset.revision if preset else 0
        back = store.revert(name, number, by=self.actor, seen_revision=seen)
        self.ahead(parsed_preset, back)
        before = f"it was revision {preset.revision}" if preset else "it was not in force"
        self.say(
            f"Preset {name} is what it was at revision {number}, {may_in_words(back.grants)};"
            f" before {before}, this is revision {back.revision}."
            f" It {shown.counts_in_words(name)}."
        )

    def remove(self) -> None:
        usage = "preset/remove <name>"
        preset = shown.preset_typed(self, usage)
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}. Nothing was changed.")
        if store.assigned_to(preset.name):
            raise CommandError(
                f"Preset {preset.name} counts in {shown.places_in_words(preset.name)}; first give"
                " these another with preset/assign, or none with preset/unassign. Nothing was"
                " changed."
            )
        imports = log.waiting(preset.name)
        store.remove(preset.name, by=self.actor)
        gone = "; ".join(import_in_words(one) for one in imports[-6:])
        waited = f" What waited of it waits no longer: {gone}." if imports else ""
        self.say(
            f"Preset {preset.name} is in force no longer;"
            f" preset/revert {preset.name} = {preset.revision} brings it back.{waited}"
        )


def _said(preset: StoredPreset) -> tuple[object, ...]:
    """What a revert may change."""
    return preset.sha256, preset.grants, preset.switches


def _compared(before: StoredPreset | None, after: StoredPreset) -> list[str]:
    """What is different in a preset from what it was, prompt by prompt."""
    lines = []
    if before is not None and before.grants != after.grants:
        was, now = grants_in_words(before.grants), grants_in_words(after.grants)
        lines += ["grants:", f"- {was}", f"+ {now}"]
    old = parsed_preset(before) if before else None
    lines += preset_differences(old, parsed_preset(after))
    head = f"Compared with revision {before.revision}:" if before else "There was none before it:"
    more = "and {} lines more; preset/export writes all of it"
    return and_more([head, *(lines or ["Nothing is different."])], most=_MOST_LINES, more=more)


def _history(name: str, changes: Sequence[PresetChange]) -> Iterator[str]:
    """The changes of a preset, oldest first."""
    yield f"Revisions of preset {name}; preset/revert goes back to one that was in force,"
    yield f"preset/revisions {name} = <number> tells what one changed:"
    if len(changes) > _MOST_SHOWN:
        yield f"       and {len(changes) - _MOST_SHOWN} older ones"
    for at in range(max(0, len(changes) - _MOST_SHOWN), len(changes)):
        change = changes[at]
        before = next((one for one in reversed(changes[:at]) if one.action in IN_FORCE), None)
        yield clip_text(f"{change.number:5}  {changed_in_words(change)}", WIDTH)
        yield clip_text(f"       {_changed(before, change)}", WIDTH)


def _changed(before: PresetChange | None, change: PresetChange) -> str:
    """What a change did, in few words."""
    if change.action == "switched" and before is not None:
        new = {one: on for one, on in change.switches.items() if before.switches.get(one) != on}
        return ", ".join(
            f"{escape_controls(one)} {'on' if on else 'off'}" for one, on in new.items()
        )
    file = f"file {change.sha256[:12]}"
    in_force = change.action in IN_FORCE
    return f"{file}; grants: {grants_in_words(change.grants)}" if in_force else file
