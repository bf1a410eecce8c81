"""The switches of `card` that concern files, approvals, grants and revisions."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from evennia.objects.models import ObjectDB
from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.base import CommandError
from evennia_ai.commands.folder import offered, path_in, size_of
from evennia_ai.commands.setup.card.files import ReadCard, differing_fields, read_path, read_stored
from evennia_ai.commands.setup.imported import ImportedCommand, grants_in_words, size_in_words
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, wrap_text
from evennia_ai.formats.cards.comparing import card_differences, changed_fields
from evennia_ai.formats.lorebooks.editing.comparing import LONGEST_COMPARED
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.cards import (
    CARDS,
    StoredCard,
    greeters_of,
    import_card,
    players_of,
)
from evennia_ai.store.authored.files import read_file, read_text
from evennia_ai.store.authored.life_cycle import Revision

SUFFIXES: Final = (".json", ".png", ".apng", ".charx", ".jpg", ".jpeg")
_MOST_PLAYERS: Final = 10
_MOST_FILE: Final = 44
"""The columns for what a revision changed in the file, so that the grants fit next to it."""


class CardImports(ImportedCommand[StoredCard], CardWork):
    """The switches that import, approve, grant and revert cards."""

    kind = CARDS
    first = "played by"

    @waits
    def import_file(self) -> Steps:
        """Import the card of a file, to wait for approval. It is read whole before any writing."""
        folder = conf().card_folder
        if not self.lhs:
            self.show(offered(folder, suffixes=SUFFIXES))
            return
        if self.rhs is not None and not self.rhs:
            raise CommandError("Usage: card/import <file> [= <name>]")
        path = path_in(folder, self.lhs, command="card/import", suffixes=SUFFIXES)
        given = conf()
        reading = f"Reading {path.name} ({size_in_words(size_of(path))})"
        work = self.worked(reading, lambda progress: read_path(path, given, progress))
        self.say(f"{reading}...")
        read = yield work
        name = self.name_for(self.rhs or read.found.card.name)
        old = CARDS.current(name)
        if old is not None and old.sha256 == read.sha256 and not CARDS.waiting(name):
            again = yield self.read(old)
            same = (
                f"The same file is card {name}, revision {old.revision}, already; nothing was"
                " changed."
            )
            self.show([*wrap_text(same, WIDTH), *again.lines])
            return
        lines = [*read.lines, *(yield from self.compared_lines(name, read))]
        number = import_card(name, read.file, by=self.actor)
        if number is None:
            raise CommandError(
                f"Another builder has approved the same file as card {name} meanwhile."
            )
        self.show_report(CARDS.revision(name, number), lines)

    def read(self, thing: StoredCard) -> "Deferred[ReadCard]":
        given, file = conf(), read_file(thing.sha256)
        label = f"{thing.name}, revision {thing.revision}"
        return self.worked(
            f"Reading card {label}",
            lambda progress: read_stored(file, thing.grants, given, progress),
        )

    def compared_with_in_force(self, old: StoredCard, read: Any) -> Sequence[str]:
        return ["", *wrap_text(differing_fields(old, read), WIDTH)]

    def parse_later(self, thing: StoredCard) -> Any:
        return self.read_ahead(thing)

    def differences(self, before: StoredCard | None, after: StoredCard) -> list[str]:
        return list(card_differences(before.source if before else "{}", after.source))

    def change_in_words(
        self, before: Revision[StoredCard] | None, change: Revision[StoredCard]
    ) -> str:
        file = clip_text(_file_in_words(before, change), _MOST_FILE)
        return (
            f"{file}; grants: {grants_in_words(change.value.grants)}"
            if change.takes_effect
            else file
        )

    def counts_in(self, name: str) -> str:
        return npcs_in_words(players_of(name))

    def after_approval(self, thing: StoredCard, old: StoredCard | None) -> Iterator[str]:
        if players_of(thing.name):
            yield f"Played from the next turn on by {self.counts_in(thing.name)}."
        else:
            yield f"No NPC plays it yet: card/assign {thing.name} = <npc>."

    def before_change(self, name: str) -> Sequence[str]:
        return greeters_of(name)

    def after_change(self, name: str, before: Sequence[str]) -> list[str]:
        """Say which NPCs no longer greet, because their greeting was chosen from another file."""
        still = greeters_of(name)
        silent = [ref for ref in before if ref not in still]
        if not silent:
            return []
        told = (
            f"These NPCs no longer open with a greeting: {npcs_in_words(silent)}. Their greeting"
            " was chosen from another file. card/greeting <npc> = <number> chooses one from this"
            " file."
        )
        return wrap_text(told, WIDTH)

    def revert_told(self, thing: StoredCard) -> str:
        return f"Played by {self.counts_in(thing.name)}."

    def check_removable(self, name: str) -> None:
        """Raise CommandError if an NPC plays the card. Deleted NPCs do not count."""
        refs = players_of(name)
        there = set(
            ObjectDB.objects.filter(id__in=[int(ref) for ref in refs]).values_list("id", flat=True)
        )
        if any(int(ref) in there for ref in refs):
            raise CommandError(
                f"Card {name} is played by {self.counts_in(name)}; first give them another with"
                " card/assign, or none with card/unassign. Nothing was changed."
            )
        for ref in refs:
            CARDS.unassign(of_npc(ref), by=self.actor)


def npcs_in_words(refs: Sequence[str]) -> str:
    """Return NPCs by name and number."""
    found = ObjectDB.objects.filter(id__in=[int(ref) for ref in refs[:_MOST_PLAYERS]])
    names = {str(npc.id): escape_controls(npc.key) for npc in found}
    told = [f"{names.get(ref, 'deleted')} (#{ref})" for ref in refs[:_MOST_PLAYERS]]
    more = f" and {len(refs) - _MOST_PLAYERS} more" if len(refs) > _MOST_PLAYERS else ""
    return ", ".join(told) + more if told else "nobody"


def _file_in_words(before: Revision[StoredCard] | None, change: Revision[StoredCard]) -> str:
    """Return which fields of its file a revision changed, in a few words."""
    if before is None:
        return "the first file"
    if before.value.sha256 == change.value.sha256:
        return "the same file"
    was, now = read_text(before.value.sha256), read_text(change.value.sha256)
    if max(len(was), len(now)) > LONGEST_COMPARED:
        return f"file {change.value.sha256[:12]}, a long one"
    names = [
        escape_controls(field) for field, _, _ in changed_fields(json.loads(was), json.loads(now))
    ]
    return f"changed: {', '.join(names)}" if names else "another file that says the same"
