"""The switches of `card` that say what a card in force may do beyond standing in the history.

Nobody approves or grants unread: what of each card a builder was shown last is remembered till a
reload. Two builders may be at one card, and what the other one put there meanwhile is another text
than the one that was read.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.cards.report.import_report import ImportReport
from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.setup.card import shown
from evennia_ai.commands.setup.card.reading import reader
from evennia_ai.commands.setup.card.shown import card_named, plain_name
from evennia_ai.commands.strict import CommandError, StrictCommand
from evennia_ai.prompt.components import ALLOWS, Grants, in_order
from evennia_ai.settings.conf import conf
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.card_revisions import CardChange
from evennia_ai.store.authored.cards import StoredCard
from evennia_ai.text.columns import WIDTH, wrapped


def saw_report(builder: Any, change: CardChange) -> None:
    """The builder was shown the report on this revision."""
    builder.ndb.card_reports = {**reports_seen(builder), change.name: change.number}
    _saw_file(builder, change.name, change.sha256)


def reports_seen(builder: Any) -> dict[str, int]:
    """The revision whose report the builder was shown last, by the card's name."""
    return builder.ndb.card_reports or {}


def saw_card(builder: Any, card: StoredCard) -> None:
    """The builder was shown the card in force."""
    _saw_file(builder, card.name, card.sha256)


def refuse_unseen(builder: Any, card: StoredCard) -> None:
    """CommandError where the file in force is not the one the builder was shown last."""
    known = (builder.ndb.card_files_seen or {}).get(card.name, card.sha256)
    if known != card.sha256:
        raise CommandError(
            f"Another file is in force as card {card.name} than the one you were shown last: look"
            f" at it with card {card.name}, then type this again. Nothing was changed."
        )


def _saw_file(builder: Any, name: str, sha256: str) -> None:
    builder.ndb.card_files_seen = {**(builder.ndb.card_files_seen or {}), name: sha256}


_BETWEEN: Final = re.compile(r"[,\s]+")


class CardGrants(CardWork):
    """Giving grants, taking them, and telling of them."""

    @waits
    def grant(self) -> Steps:
        """Give a card grants; without a value, tell of all grants."""
        usage = "card/grant <name> [= <grant>, <grant>...]"
        card = card_named(plain_name(self.wanted(usage), usage))
        if self.rhs is None:
            yield from self._tell_grants(card)
            return
        wanted = _typed(self, usage)
        new = wanted - card.grants
        if not new:
            self.say(f"Card {card.name} has that already; nothing was changed.")
            return
        refuse_unseen(self.caller, card)
        after = store.grant(card.name, wanted, by=self.typed_by)
        self.read_ahead(after)
        self.show("\n".join(_changed(after, "may now", new)))

    def revoke(self) -> None:
        """Take grants from a card."""
        usage = "card/revoke <name> = <grant>, <grant>..."
        card = card_named(plain_name(self.wanted(usage), usage))
        gone = _typed(self, usage) & card.grants
        if not gone:
            has = f"none of that, only {shown.grants_in_words(card.grants)}"
            told = has if card.grants else "no grant at all"
            self.say(f"Card {card.name} has {told}; nothing was changed.")
            return
        after = store.revoke(card.name, gone, by=self.typed_by)
        self.read_ahead(after)
        self.show("\n".join(_changed(after, "may no longer", gone)))

    def _tell_grants(self, card: StoredCard) -> Steps:
        """Every grant: what it allows, whether the card has it, and whether it has a use for it."""
        _, file = log.revision(card.name, card.revision)
        cards = reader(conf())
        read = yield self.worked(
            f"Reading card {card.name}",
            lambda progress: cards.stored(file, card.grants, progress),
        )
        self.show("\n".join(_table(card, read.report)))


def typed_grants(command: StrictCommand, text: str) -> Grants:
    """The grants that were typed; CommandError, after a list of all, where one is none."""
    words = [word.lower() for word in _BETWEEN.split(text) if word]
    unknown = [word for word in words if word not in ALLOWS]
    if unknown or not words:
        command.show("\n".join(["Grants, and what each allows:", *shown.allowed()]))
        what = f"'{unknown[0]}' is no grant" if unknown else "No grant was named"
        raise CommandError(f"{what}; those there are stand above. Nothing was changed.")
    return frozenset(grant for grant in ALLOWS if grant in words)


def _typed(command: StrictCommand, usage: str) -> Grants:
    if not command.rhs:
        raise CommandError(f"Usage: {usage}")
    return typed_grants(command, command.rhs)


def _changed(card: StoredCard, now: str, grants: Grants) -> list[str]:
    """What a change of grants did, and to which file."""
    is_from = next(one for one in log.changes(card.name) if one.sha256 == card.sha256)
    lines = [f"Card {card.name} {now}:"]
    for grant in in_order(grants):
        lines += shown.column(f"  {grant}", ALLOWS[grant])
    rest = (
        f"Revision {card.revision}, of the file that was {shown.changed_in_words(is_from)};"
        f" it has the grants: {shown.grants_in_words(card.grants)}."
    )
    return lines + wrapped(rest, WIDTH)


def _table(card: StoredCard, report: ImportReport) -> Iterator[str]:
    uses = {use.grant: use for use in report.uses}
    given = log.who_gave(log.changes(card.name))
    yield f"Grants of card {card.name}, revision {card.revision}:"
    for grant, allows in ALLOWS.items():
        use = uses.get(grant)
        mark = "*" if grant in given else " "
        whose = f" ({shown.given_in_words(given[grant])})" if grant in given else ""
        yield from shown.column(f"{mark} {grant}", f"{allows}{whose}")
        yield from shown.column("", f"here: {use.gives}" if use else "the card has no use for it")
    yield "Those with a * it has."
    yield f"card/grant {card.name} = <grant> gives one, card/revoke takes it."
