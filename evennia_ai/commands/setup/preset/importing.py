"""The switches of `preset` that take a file in, approve it or not, and say what it may do.

An import changes nothing until somebody approves it, and what is approved is the very file that
the report was about: where it could be another one, its number is asked for. Nobody approves or
grants unread: what of each preset a builder was shown last is remembered till a reload.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import BackgroundWork, Steps, waits
from evennia_ai.commands.base import CommandError
from evennia_ai.commands.folder import PRESETS as FOLDER
from evennia_ai.commands.folder import offered, path_in, size_of
from evennia_ai.commands.setup.imported import (
    changed_in_words,
    column,
    given_in_words,
    grants_in_words,
    grants_typed,
    import_in_words,
    size_in_words,
    typed_grants,
)
from evennia_ai.commands.setup.preset import shown
from evennia_ai.commands.setup.preset.files import ReadPreset, read_path, read_stored
from evennia_ai.commands.setup.preset.shown import PRESETS
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.prompt.components import ALLOWS, NO_GRANTS, Grants, in_order
from evennia_ai.engine.text.columns import WIDTH, wrap_text
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import preset_revisions as log
from evennia_ai.store.authored import presets as store
from evennia_ai.store.authored.preset_revisions import PresetChange
from evennia_ai.store.authored.presets import StoredPreset, known_name, typeable_name

_APPROVE: Final = "preset/approve <name>[/<number>] [= <grant>, <grant>...]"
_GRANT: Final = "preset/grant <name> [= <grant>, <grant>...]"


class PresetImports(BackgroundWork):
    """Everything between a file and what its preset may do in force."""

    @waits
    def import_file(self) -> Steps:
        """Let the preset of a file wait; it is read whole before anything is written."""
        folder = conf().preset_folder
        if not self.lhs:
            self.show(offered(folder, kind=FOLDER))
            return
        if self.rhs is not None and not self.rhs:
            raise CommandError("Usage: preset/import <file> [= <name>]")
        path = path_in(folder, self.lhs, command="preset/import", kind=FOLDER)
        name = _name_for(self.rhs or path.stem)
        reading = f"Reading {path.name} ({size_in_words(size_of(path))})"
        work = self.worked(reading, lambda progress: read_path(path, name, progress))
        self.say(f"{reading}...")
        read: ReadPreset = yield work
        old = store.preset_or_none(name)
        if old is not None and old.sha256 == read.sha256 and not log.waiting(name):
            self._report_in_force(old, read)
            return
        number = store.import_preset(name, read.source, by=self.actor)
        if number is None:
            raise CommandError(f"Somebody has approved this very file as preset {name} meanwhile.")
        self._show_report(PRESETS.change(name, number), read.report, waits_still=True)

    @waits
    def report(self) -> Steps:
        change = PRESETS.reported(self.wanted("preset/report <name>[/<number>]"))
        read = yield self.read_stored(_as_stored(change))
        waits_still = any(one.number == change.number for one in log.waiting(change.name))
        self._show_report(change, read.report, waits_still=waits_still)

    def approve(self) -> None:
        text = self.wanted(_APPROVE)
        if self.rhs is not None and not self.rhs:
            raise CommandError(f"Usage: {_APPROVE}")
        change = PRESETS.import_named(text, read=PRESETS.reports_seen(self.caller))
        grants = NO_GRANTS if self.rhs is None else typed_grants(self, self.rhs)
        old = store.preset_or_none(change.name)
        others = [one for one in log.waiting(change.name) if one.number != change.number]
        preset = store.approve(change.name, change.number, grants=grants, by=self.actor)
        self.ahead(parsed_preset, preset)
        self.show(shown.approved(preset, old, change, others))

    def reject(self) -> None:
        usage = "preset/reject <name>"
        name = PRESETS.plain_name(self.wanted(usage), usage)
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}")
        imports = log.waiting(name)
        if not store.reject(name, by=self.actor):
            raise CommandError(f"No import of a preset '{name}' waits.")
        preset = store.preset_or_none(name)
        left = f"revision {preset.revision} is in force as before" if preset else "none is in force"
        gone = "; ".join(import_in_words(one) for one in imports[-6:])
        self.say(f"Rejected what waited of preset {name}: {gone}. Of this preset {left}.")

    @waits
    def grant(self) -> Steps:
        """Give a preset grants; without a value, tell of all grants."""
        preset = shown.preset_typed(self, _GRANT)
        if self.rhs is None:
            read = yield self.read_stored(preset)
            PRESETS.saw_file(self.caller, preset.name, preset.sha256)
            self.show([*_table(preset), "", *read.report])
            return
        wanted = grants_typed(self, _GRANT)
        new = wanted - preset.grants
        if not new:
            self.say(f"Preset {preset.name} has that already; nothing was changed.")
            return
        PRESETS.refuse_unseen(self.caller, preset.name, preset.sha256)
        after = store.grant(preset.name, wanted, by=self.actor)
        self.ahead(parsed_preset, after)
        self.show(_changed(after, "may now", new))

    def revoke(self) -> None:
        usage = "preset/revoke <name> = <grant>, <grant>..."
        preset = shown.preset_typed(self, usage)
        gone = grants_typed(self, usage) & preset.grants
        if not gone:
            has = f"none of that, only {grants_in_words(preset.grants)}"
            told = has if preset.grants else "no grant at all"
            self.say(f"Preset {preset.name} has {told}; nothing was changed.")
            return
        after = store.revoke(preset.name, gone, by=self.actor)
        self.ahead(parsed_preset, after)
        self.show(_changed(after, "may no longer", gone))

    def read_stored(self, preset: StoredPreset) -> "Deferred[ReadPreset]":
        """A stored preset, read beside the game."""
        return self.worked(
            f"Reading preset {preset.name}", lambda progress: read_stored(preset, progress)
        )

    def _show_report(
        self, change: PresetChange, lines: Sequence[str], *, waits_still: bool
    ) -> None:
        """Show the report, and remember till a reload that this builder was shown it."""
        end = shown.to_approve(change) if waits_still else ()
        self.show([*PRESETS.report_head(change), *lines, *end])
        PRESETS.saw_report(self.caller, change)

    def _report_in_force(self, preset: StoredPreset, read: ReadPreset) -> None:
        """Tell that the file is the preset in force, and what it holds."""
        same = (
            f"This very file is preset {preset.name}, revision {preset.revision}, already; nothing"
            " was changed."
        )
        self.show([*wrap_text(same, WIDTH), *read.report])


def _as_stored(change: PresetChange) -> StoredPreset:
    """The preset that a revision says, whether it was in force or only waits."""
    _, source = log.revision(change.name, change.number)
    return StoredPreset(
        name=change.name,
        source=source,
        sha256=change.sha256,
        revision=change.number,
        grants=change.grants,
        switches=tuple(sorted(change.switches.items())),
    )


def _changed(preset: StoredPreset, now: str, grants: Grants) -> list[str]:
    """What a change of grants did, and to which file."""
    is_from = next(one for one in log.changes(preset.name) if one.sha256 == preset.sha256)
    lines = [f"Preset {preset.name} {now}:"]
    for grant in in_order(grants):
        lines += column(f"  {grant}", ALLOWS[grant])
    rest = (
        f"Revision {preset.revision}, of the file that was {changed_in_words(is_from)};"
        f" it has the grants: {grants_in_words(preset.grants)}."
    )
    return lines + wrap_text(rest, WIDTH)


def _table(preset: StoredPreset) -> Iterator[str]:
    given: dict[Any, PresetChange] = dict(log.who_gave(log.changes(preset.name)))
    yield f"Grants of preset {preset.name}, revision {preset.revision}:"
    for grant, allows in ALLOWS.items():
        whose = f" ({given_in_words(given[grant])})" if grant in given else ""
        yield from column(f"{'*' if grant in given else ' '} {grant}", f"{allows}{whose}")
    yield "Those with a * it has."
    yield f"preset/grant {preset.name} = <grant> gives one, preset/revoke takes it."


def _name_for(wanted: str) -> str:
    """The name a preset gets; CommandError where no command could be told it."""
    try:
        return known_name(typeable_name(wanted))
    except ComponentValueError as error:
        raise CommandError(
            f"{error}; give it another: preset/import <file> = <name>. Nothing was imported."
        ) from error
