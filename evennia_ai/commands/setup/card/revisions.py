"""The switches of `card` about its revisions: back to one, out into a file, and its end."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evennia.objects.models import ObjectDB

from evennia_ai.cards.dumping import FORMS, Form, dump_card, left_out
from evennia_ai.cards.limits import CardLimits
from evennia_ai.cards.loading import load_card
from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.folder import new_file
from evennia_ai.commands.naming import whole_number
from evennia_ai.commands.setup.card import shown
from evennia_ai.commands.setup.card import shown as named
from evennia_ai.commands.setup.card.shown import (
    card_named,
    import_in_words,
    plain_name,
    size_in_words,
)
from evennia_ai.commands.strict import CommandError
from evennia_ai.errors import NotStoredError
from evennia_ai.foreign.documents import Progress
from evennia_ai.settings.conf import conf
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.card_revisions import IN_FORCE, CardChange, CardFile
from evennia_ai.store.authored.cards import known_name
from evennia_ai.text.columns import WIDTH, clipped, wrapped

MOST_SHOWN: Final = 50


class CardRevisions(CardWork):
    """Looking at revisions and going back to them."""

    def revisions(self) -> None:
        """Who imported, approved, granted and changed what, and when."""
        usage = "card/revisions <name>"
        name = plain_name(self.wanted(usage), usage)
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}. Nothing was changed.")
        changes = log.changes(name)
        if not changes:
            raise NotStoredError("card", name, store.card_names())
        self.show("\n".join(_history(name, changes)))

    def revert(self) -> None:
        """Put the file and the grants of an earlier revision in force again."""
        text, value = self.both("card/revert <name> = <number>")
        name, number = known_name(text), whole_number(value, what="revision")
        then, _ = log.revision(name, number)
        card = store.card_or_none(name)
        is_same = card is not None and (card.sha256, card.grants) == (then.sha256, then.grants)
        if is_same and then.action in IN_FORCE:
            self.say(f"Card {name} is so already; nothing was changed.")
            return
        greeters = cards.greeters_of(name)
        back = store.revert(name, number, by=self.typed_by)
        self.read_ahead(back)
        was = f"before it was revision {card.revision}" if card else "before it was not in force"
        self.say(
            f"Card {name} is what it was at revision {number}, {shown.may_in_words(back.grants)};"
            f" {was}, this is revision {back.revision}. Played by"
            f" {shown.players_in_words(name)}."
        )
        if silenced := shown.silenced(name, greeters):
            self.show("\n".join(silenced))

    def remove(self) -> None:
        """Let a card that nobody plays be in force no longer."""
        usage = "card/remove <name>"
        card = card_named(plain_name(self.wanted(usage), usage))
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}. Nothing was changed.")
        imports = log.waiting(card.name)
        gone_npcs = _gone(card.name)
        if set(cards.players_of(card.name)) - set(gone_npcs):
            raise CommandError(
                f"Card {card.name} is played by {shown.players_in_words(card.name)}; first give"
                " them another with card/assign, or none with card/unassign. Nothing was changed."
            )
        for ref in gone_npcs:
            cards.unassign(ref, by=self.typed_by)
        store.remove(card.name, by=self.typed_by)
        gone = "; ".join(import_in_words(one) for one in imports[-6:])
        waited = f" What waited of it waits no longer: {gone}." if imports else ""
        self.say(
            f"Card {card.name} is in force no longer;"
            f" card/revert {card.name} = {card.revision} brings it back.{waited}"
        )


def _gone(card_name: str) -> list[str]:
    """The NPCs that play a card and were deleted."""
    refs = cards.players_of(card_name)
    there = ObjectDB.objects.filter(id__in=[int(ref) for ref in refs]).values_list("id", flat=True)
    return [ref for ref in refs if int(ref) not in set(there)]


def _history(name: str, changes: Sequence[CardChange]) -> Iterator[str]:
    """The changes of a card, oldest first; the file by the beginning of its hash."""
    yield f"Revisions of card {name}; card/revert goes back to one that was in force:"
    if len(changes) > MOST_SHOWN:
        yield f"       and {len(changes) - MOST_SHOWN} older ones"
    for change in changes[-MOST_SHOWN:]:
        yield clipped(f"{change.number:5}  {shown.changed_in_words(change)}", WIDTH)
        grants = f"; grants: {shown.grants_in_words(change.grants)}"
        told = grants if change.action in IN_FORCE else ""
        yield clipped(f"       file {change.sha256[:12]}{told}", WIDTH)


_USAGE: Final = "card/export <card>[/<number>] [= json | png | charx [with v2]]"
_MOST_LEFT_OUT: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What is to be written: as which kind of file, and whether with the copy for V2 programs."""

    form: Form
    with_v2: bool
    modified_at: int
    limits: CardLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written, and what a file of that kind could not hold."""

    path: Path
    size_bytes: int
    left_out: tuple[str, ...]


class CardExport(CardWork):
    """Writing cards into the folder."""

    @waits
    def export(self) -> Steps:
        """Write a card, in force or of any revision, into a file that was not there."""
        name, number = named.revision_named(self.wanted(_USAGE))
        _, file = log.revision(name, number)
        wanted = self._wanted(file)
        folder = conf().card_folder
        written = yield self.worked(
            f"Writing card {name}",
            lambda progress: _written(file, wanted, folder, name, progress),
        )
        told = (
            f"Wrote card {name}, revision {number}, to {written.path.name} in {folder}"
            f" ({size_in_words(written.size_bytes)})."
        )
        left = written.left_out[:_MOST_LEFT_OUT]
        more = len(written.left_out) - len(left)
        lines = [*left, *([f"and {more} more like these"] if more else [])]
        self.show("\n".join(line for one in (told, *lines) for line in wrapped(one, WIDTH)))

    def _wanted(self, file: CardFile) -> Export:
        """What was typed, or the kind of file that the card came in."""
        own = "png" if file.carrier == "apng" else file.carrier
        words = [own] if self.rhs is None else self.rhs.lower().split()
        form, rest = (words[0] if words else ""), words[1:]
        if form not in FORMS or rest not in ([], ["with", "v2"]):
            raise CommandError(
                f"'{self.rhs}' is no kind of card file; there are json, png and charx, and png with"
                " v2. Nothing was written."
            )
        return Export(
            form=form, with_v2=bool(rest), modified_at=int(time.time()), limits=conf().card_limits
        )


def _written(
    file: CardFile, wanted: Export, folder: Path, name: str, progress: Progress
) -> Written:
    """Write the card; this runs in another thread."""
    found = load_card(file.content, limits=wanted.limits, progress=progress)
    content = dump_card(
        found,
        wanted.form,
        with_v2=wanted.with_v2,
        modified_at=wanted.modified_at,
        limits=wanted.limits,
    )
    progress("the file", 0, 1)
    path = new_file(folder, name, content, suffix=f".{wanted.form}")
    return Written(path=path, size_bytes=len(content), left_out=left_out(found, wanted.form))
