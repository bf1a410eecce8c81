"""The switches of `preset` that concern files, approvals, grants and revisions."""

from collections.abc import Iterator
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import Steps, waits
from evennia_ai.commands.base import CommandError, counted
from evennia_ai.commands.folder import PRESETS as FOLDER
from evennia_ai.commands.folder import offered, path_in, size_of
from evennia_ai.commands.naming import scope_in_words
from evennia_ai.commands.setup.imported import ImportedCommand, grants_in_words, size_in_words
from evennia_ai.commands.setup.preset.files import (
    ReadPreset,
    preset_differences,
    read_path,
    read_stored,
)
from evennia_ai.engine.text.columns import WIDTH, escape_controls, wrap_text
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.life_cycle import Revision
from evennia_ai.store.authored.presets import PRESETS, StoredPreset, import_preset

_MOST_PLACES: Final = 10


class PresetImports(ImportedCommand[StoredPreset]):
    """The switches that import, approve, grant and revert presets."""

    kind = PRESETS
    first = "used in"

    @waits
    def import_file(self) -> Steps:
        """Import the preset of a file, to wait for approval.

        It is read whole before any writing.
        """
        folder = conf().preset_folder
        if not self.lhs:
            self.show(offered(folder, kind=FOLDER))
            return
        if self.rhs is not None and not self.rhs:
            raise CommandError("Usage: preset/import <file> [= <name>]")
        path = path_in(folder, self.lhs, command="preset/import", kind=FOLDER)
        name = self.name_for(self.rhs or path.stem)
        reading = f"Reading {path.name} ({size_in_words(size_of(path))})"
        work = self.worked(reading, lambda progress: read_path(path, name, progress))
        self.say(f"{reading}...")
        read: ReadPreset = yield work
        old = PRESETS.current(name)
        if old is not None and old.sha256 == read.sha256 and not PRESETS.waiting(name):
            same = (
                f"The same file is preset {name}, revision {old.revision}, already; nothing was"
                " changed."
            )
            self.show([*wrap_text(same, WIDTH), *read.lines])
            return
        number = import_preset(name, read.source, by=self.actor)
        if number is None:
            raise CommandError(
                f"Another builder has approved the same file as preset {name} meanwhile."
            )
        self.show_report(PRESETS.revision(name, number), read.lines)

    def read(self, thing: StoredPreset) -> "Deferred[ReadPreset]":
        return self.worked(
            f"Reading preset {thing.name}", lambda progress: read_stored(thing, progress)
        )

    def parse_later(self, thing: StoredPreset) -> Any:
        return self.ahead(parsed_preset, thing)

    def differences(self, before: StoredPreset | None, after: StoredPreset) -> list[str]:
        old = parsed_preset(before) if before else None
        return list(preset_differences(old, parsed_preset(after)))

    def change_in_words(
        self, before: Revision[StoredPreset] | None, change: Revision[StoredPreset]
    ) -> str:
        if change.action == "switched" and before is not None:
            was = dict(before.value.switches)
            new = {one: on for one, on in change.value.switches if was.get(one) != on}
            return ", ".join(
                f"{escape_controls(one)} {'on' if on else 'off'}" for one, on in new.items()
            )
        file, grants = f"file {change.value.sha256[:12]}", grants_in_words(change.value.grants)
        return f"{file}; grants: {grants}" if change.takes_effect else file

    def counts_in(self, name: str) -> str:
        scopes = PRESETS.assigned_to(name)
        told = [scope_in_words(scope) for scope in scopes[:_MOST_PLACES]]
        more = f" and {len(scopes) - _MOST_PLACES} more" if len(scopes) > _MOST_PLACES else ""
        return ", ".join(told) + more if told else "nowhere"

    def counts_in_words(self, name: str) -> str:
        """Return where a preset is used, as the end of a sentence."""
        where = self.counts_in(name)
        return "is used nowhere" if where == "nowhere" else f"is used in {where}"

    def after_approval(self, thing: StoredPreset, old: StoredPreset | None) -> Iterator[str]:
        if old is not None and old.switches:
            yield (
                f"The switches of revision {old.revision} belong to another file; this file has"
                f" its own. preset {thing.name} lists its prompts."
            )
        if PRESETS.assigned_to(thing.name):
            yield f"It is used from the next turn on in {self.counts_in(thing.name)}."
        else:
            yield f"It is used nowhere yet: preset/assign {thing.name} = <place>."

    def not_carried_over(self, thing: StoredPreset) -> list[str]:
        grants = f"grants ({grants_in_words(thing.grants)})" if thing.grants else ""
        switched = len(thing.switches)
        switches = f"{counted(switched, 'switch', 'switches')}" if switched else ""
        lost = " and ".join(one for one in (grants, switches) if one)
        if not lost:
            return []
        return wrap_text(
            f"Revision {thing.revision} has {lost}, which the import does not get.", WIDTH
        )

    def revert_told(self, thing: StoredPreset) -> str:
        return f"It {self.counts_in_words(thing.name)}."

    def check_removable(self, name: str) -> None:
        if PRESETS.assigned_to(name):
            raise CommandError(
                f"Preset {name} is used in {self.counts_in(name)}; first use another one there"
                " with preset/assign, or none with preset/unassign. Nothing was changed."
            )
