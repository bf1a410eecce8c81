"""The switches of `card` that tell what a card was, and go back to it."""

import json
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

from evennia.objects.models import ObjectDB

from evennia_ai.commands.background_work import CardWork
from evennia_ai.commands.base import CommandError, Run, and_more
from evennia_ai.commands.naming import whole_number
from evennia_ai.commands.screens import diffed
from evennia_ai.commands.setup.card import shown
from evennia_ai.commands.setup.card.shown import CARDS
from evennia_ai.commands.setup.imported import (
    changed_in_words,
    grants_in_words,
    import_in_words,
    may_in_words,
)
from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls
from evennia_ai.formats.cards.comparing import card_differences, changed_fields
from evennia_ai.formats.lorebooks.editing.comparing import LONGEST_COMPARED
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.card_revisions import IN_FORCE, CardChange, CardFile
from evennia_ai.store.authored.cards import StoredCard, known_name

MOST_SHOWN: Final = 50
MOST_TOLD: Final = 12
"""Of so many newest ones it is told what each changed; for that their files are read."""
MOST_FILE: Final = 44
"""Columns of what is told of a file, so that grants have room beside it."""
_MOST_LINES: Final = 200


class CardRevisions(CardWork):
    """Everything about what a card was before, and whether it is in force."""

    def revisions(self) -> None:
        """Who changed a card; with a number, what that revision changed."""
        usage = "card/revisions <name> [= <number>]"
        name = CARDS.plain_name(self.wanted(usage), usage)
        changes = log.changes(name)
        if not changes:
            raise NotStoredError("card", name, store.card_names())
        if self.rhs is None:
            self.show(_history(name, changes))
            return
        number = whole_number(self.rhs, what="revision")
        then, file = log.revision(name, number)
        before = [one for one in changes if one.action in IN_FORCE and one.number < number]
        lines = [f"Revision {number} of card {name}, {changed_in_words(then)}."]
        self.show(diffed([*lines, *_compared(name, before[-1].number if before else None, file)]))

    def revert(self) -> Run:
        """Put an earlier file and its grants in force again, after a question."""
        text, value = self.both("card/revert <name> = <number>")
        name, number = known_name(text), whole_number(value, what="revision")
        then, file = log.in_force_then(name, number)
        return self._revert_after_yes(then, file)

    def _revert_after_yes(self, then: CardChange, file: CardFile) -> Generator[str, Any, None]:
        name, number = then.name, then.number
        card = store.card_or_none(name)
        is_same = card is not None and (card.sha256, card.grants) == (then.sha256, then.grants)
        was = card.revision if card else None
        changes = [] if is_same else [*_grants_told(card, then), *_compared(name, was, file)]
        if not (yield from self.goes_back(f"card {name}", number, changes=changes)):
            return
        greeters = store.greeters_of(name)
        back = store.revert(name, number, by=self.actor, seen_revision=was or 0)
        self.read_ahead(back)
        before = f"before it was revision {was}" if card else "before it was not in force"
        self.say(
            f"Card {name} is what it was at revision {number}, {may_in_words(back.grants)};"
            f" {before}, this is revision {back.revision}. Played by"
            f" {shown.players_in_words(name)}."
        )
        if silenced := shown.silenced(name, greeters):
            self.show(silenced)

    def remove(self) -> None:
        usage = "card/remove <name>"
        card = shown.card_typed(self, usage)
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}. Nothing was changed.")
        imports = log.waiting(card.name)
        gone_npcs = _gone(card.name)
        if set(store.players_of(card.name)) - set(gone_npcs):
            raise CommandError(
                f"Card {card.name} is played by {shown.players_in_words(card.name)}; first give"
                " them another with card/assign, or none with card/unassign. Nothing was changed."
            )
        for ref in gone_npcs:
            store.unassign(ref, by=self.actor)
        store.remove(card.name, by=self.actor)
        gone = "; ".join(import_in_words(one) for one in imports[-6:])
        waited = f" What waited of it waits no longer: {gone}." if imports else ""
        self.say(
            f"Card {card.name} is in force no longer;"
            f" card/revert {card.name} = {card.revision} brings it back.{waited}"
        )


def _grants_told(before: StoredCard | None, after: CardChange) -> list[str]:
    """What a card may do before and after, where that is different."""
    if before is None or before.grants == after.grants:
        return []
    was, now = grants_in_words(before.grants), grants_in_words(after.grants)
    return ["grants:", f"- {was}", f"+ {now}"]


def _compared(name: str, before: int | None, file: CardFile) -> list[str]:
    """What is different in a file from an earlier revision, field by field."""
    source = "{}" if before is None else log.revision(name, before)[1].source
    head = f"Compared with revision {before}:" if before else "There was none before it:"
    lines = list(card_differences(source, file.source))
    if not lines:
        return ["No field is different."]
    more = "and {} lines more; card/export writes all of it"
    return and_more([head, *lines], most=_MOST_LINES, more=more)


def _gone(card_name: str) -> list[str]:
    """The NPCs that play a card and were deleted."""
    refs = store.players_of(card_name)
    there = ObjectDB.objects.filter(id__in=[int(ref) for ref in refs]).values_list("id", flat=True)
    return [ref for ref in refs if int(ref) not in set(there)]


def _history(name: str, changes: Sequence[CardChange]) -> Iterator[str]:
    """The changes of a card, oldest first: what each did to the file that was in force before."""
    yield f"Revisions of card {name}; card/revert goes back to one that was in force,"
    yield f"card/revisions {name} = <number> tells what one changed:"
    if len(changes) > MOST_SHOWN:
        yield f"       and {len(changes) - MOST_SHOWN} older ones"
    files = _Files(name)
    for at in range(max(0, len(changes) - MOST_SHOWN), len(changes)):
        change = changes[at]
        before = next((one for one in reversed(changes[:at]) if one.action in IN_FORCE), None)
        yield clip_text(f"{change.number:5}  {changed_in_words(change)}", WIDTH)
        is_new = at >= len(changes) - MOST_TOLD
        file = files.told(before, change) if is_new else f"file {change.sha256[:12]}"
        grants = f"; grants: {grants_in_words(change.grants)}"
        told = grants if change.action in IN_FORCE else ""
        yield clip_text(f"       {clip_text(file, MOST_FILE)}{told}", WIDTH)


class _Files:
    """The files of one card's revisions, each read once."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._known: Final[dict[str, str]] = {}

    def told(self, before: CardChange | None, change: CardChange) -> str:
        """Which fields of its file are others than in the one before it, in few words."""
        if before is None:
            return "the first file"
        if before.sha256 == change.sha256:
            return "the same file"
        was, now = self._source(before), self._source(change)
        if max(len(was), len(now)) > LONGEST_COMPARED:
            return f"file {change.sha256[:12]}, a long one"
        names = [
            escape_controls(field)
            for field, _, _ in changed_fields(json.loads(was), json.loads(now))
        ]
        return f"changed: {', '.join(names)}" if names else "another file that says the same"

    def _source(self, change: CardChange) -> str:
        if change.sha256 not in self._known:
            _, file = log.revision(self._name, change.number)
            self._known[change.sha256] = file.source
        return self._known[change.sha256]
