"""The switches of `card` about what it was: its revisions, the way back, and its end."""

from collections.abc import Iterator, Sequence
from typing import Final

from evennia.objects.models import ObjectDB

from evennia_ai.commands.naming import whole_number
from evennia_ai.commands.setup import card_shown as shown
from evennia_ai.commands.setup.card_named import card_named, import_in_words, plain_name
from evennia_ai.commands.setup.card_work import CardWork
from evennia_ai.commands.strict import CommandError
from evennia_ai.store import card_assignments
from evennia_ai.store import card_revisions as log
from evennia_ai.store import cards as store
from evennia_ai.store.card_names import known_name
from evennia_ai.store.card_revisions import IN_FORCE, CardChange
from evennia_ai.store.errors import NotStoredError
from evennia_ai.text.columns import WIDTH, clipped

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
        greeters = card_assignments.greeters_of(name)
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
        if set(card_assignments.players_of(card.name)) - set(gone_npcs):
            raise CommandError(
                f"Card {card.name} is played by {shown.players_in_words(card.name)}; first give"
                " them another with card/assign, or none with card/unassign. Nothing was changed."
            )
        for ref in gone_npcs:
            card_assignments.unassign(ref, by=self.typed_by)
        store.remove(card.name, by=self.typed_by)
        gone = "; ".join(import_in_words(one) for one in imports[-6:])
        waited = f" What waited of it waits no longer: {gone}." if imports else ""
        self.say(
            f"Card {card.name} is in force no longer;"
            f" card/revert {card.name} = {card.revision} brings it back.{waited}"
        )


def _gone(card_name: str) -> list[str]:
    """The NPCs that play a card and were deleted."""
    refs = card_assignments.players_of(card_name)
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
