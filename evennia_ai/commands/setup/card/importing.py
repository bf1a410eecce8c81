"""The switches of `card` that take a file in, approve it or not, and say what its card may do.

An import changes nothing until somebody approves it, and what is approved is the very file that
the report was about: where it could be another one, its number is asked for. Nobody approves or
grants unread: what of each card a builder was shown last is remembered till a reload. Two builders
may be at one card, and what the other one put there meanwhile is another text.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.base import CommandError
from evennia_ai.commands.folder import offered, path_in, size_of
from evennia_ai.commands.setup.card import shown
from evennia_ai.commands.setup.card.files import ReadCard, differences, read_path, read_stored
from evennia_ai.commands.setup.card.shown import CARDS
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
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.prompt.components import ALLOWS, NO_GRANTS, Grants, in_order
from evennia_ai.engine.text.columns import WIDTH, wrap_text
from evennia_ai.formats.cards.report.import_report import ImportReport, report_lines
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.card_revisions import CardChange, CardFile
from evennia_ai.store.authored.cards import StoredCard, greeters_of, known_name, typeable_name


def _changed(card: StoredCard, now: str, grants: Grants) -> list[str]:
    """What a change of grants did, and to which file."""
    is_from = next(one for one in log.changes(card.name) if one.sha256 == card.sha256)
    lines = [f"Card {card.name} {now}:"]
    for grant in in_order(grants):
        lines += column(f"  {grant}", ALLOWS[grant])
    rest = (
        f"Revision {card.revision}, of the file that was {changed_in_words(is_from)};"
        f" it has the grants: {grants_in_words(card.grants)}."
    )
    return lines + wrap_text(rest, WIDTH)


def _table(card: StoredCard, report: ImportReport) -> Iterator[str]:
    uses = {use.grant: use for use in report.uses}
    given = log.who_gave(log.changes(card.name))
    yield f"Grants of card {card.name}, revision {card.revision}:"
    for grant, allows in ALLOWS.items():
        use = uses.get(grant)
        mark = "*" if grant in given else " "
        whose = f" ({given_in_words(given[grant])})" if grant in given else ""
        yield from column(f"{mark} {grant}", f"{allows}{whose}")
        yield from column("", f"here: {use.gives}" if use else "the card has no use for it")
    yield "Those with a * it has."
    yield f"card/grant {card.name} = <grant> gives one, card/revoke takes it."


SUFFIXES: Final = (".json", ".png", ".apng", ".charx", ".jpg", ".jpeg")
_APPROVE: Final = "card/approve <name>[/<number>] [= <grant>, <grant>...]"


class CardImports(CardWork):
    """Everything between a file and what its card may do in force."""

    @waits
    def import_file(self) -> Steps:
        """Let the card of a file wait; it is read whole before anything is written."""
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
        name = _name_for(self.rhs or read.found.card.name)
        old = store.card_or_none(name)
        if old is not None and old.sha256 == read.sha256 and not log.waiting(name):
            yield from self._report_in_force(old, read)
            return
        lines = yield from self._compared(old, read)
        number = store.import_card(name, read.file, by=self.actor)
        if number is None:
            raise CommandError(f"Somebody has approved this very file as card {name} meanwhile.")
        change = _change(name, number)
        self._show_report(change, lines, waits_still=True)

    @waits
    def report(self) -> Steps:
        text = self.wanted("card/report <name>[/<number>]")
        change = CARDS.reported(text)
        _, file = log.revision(change.name, change.number)
        is_import = change.action == "imported"
        grants = NO_GRANTS if is_import else change.grants
        read = yield self.read_stored(f"{change.name}, revision {change.number}", file, grants)
        old = store.card_or_none(change.name) if is_import else None
        lines = yield from self._compared(old, read)
        waits_still = any(one.number == change.number for one in log.waiting(change.name))
        self._show_report(change, lines, waits_still=waits_still)

    def approve(self) -> None:
        text = self.wanted(_APPROVE)
        if self.rhs is not None and not self.rhs:
            raise CommandError(f"Usage: {_APPROVE}")
        change = CARDS.import_named(text, read=CARDS.reports_seen(self.caller))
        grants = NO_GRANTS if self.rhs is None else typed_grants(self, self.rhs)
        old = store.card_or_none(change.name)
        others = [one for one in log.waiting(change.name) if one.number != change.number]
        greeters = greeters_of(change.name)
        card = store.approve(change.name, change.number, grants=grants, by=self.actor)
        self.read_ahead(card)
        told = shown.approved(card, old, change, others)
        self.show([*told, *shown.silenced(card.name, greeters)])

    def reject(self) -> None:
        usage = "card/reject <name>"
        name = CARDS.plain_name(self.wanted(usage), usage)
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}")
        imports = log.waiting(name)
        if not store.reject(name, by=self.actor):
            raise CommandError(f"No import of a card '{name}' waits.")
        card = store.card_or_none(name)
        left = f"revision {card.revision} is in force as before" if card else "none is in force"
        gone = "; ".join(import_in_words(one) for one in imports[-6:])
        self.say(f"Rejected what waited of card {name}: {gone}. Of this card {left}.")

    @waits
    def grant(self) -> Steps:
        """Give a card grants; without a value, tell of all grants."""
        usage = "card/grant <name> [= <grant>, <grant>...]"
        card = shown.card_typed(self, usage)
        if self.rhs is None:
            yield from self._tell_grants(card)
            return
        wanted = grants_typed(self, usage)
        new = wanted - card.grants
        if not new:
            self.say(f"Card {card.name} has that already; nothing was changed.")
            return
        CARDS.refuse_unseen(self.caller, card.name, card.sha256)
        after = store.grant(card.name, wanted, by=self.actor)
        self.read_ahead(after)
        self.show(_changed(after, "may now", new))

    def revoke(self) -> None:
        usage = "card/revoke <name> = <grant>, <grant>..."
        card = shown.card_typed(self, usage)
        gone = grants_typed(self, usage) & card.grants
        if not gone:
            has = f"none of that, only {grants_in_words(card.grants)}"
            told = has if card.grants else "no grant at all"
            self.say(f"Card {card.name} has {told}; nothing was changed.")
            return
        after = store.revoke(card.name, gone, by=self.actor)
        self.read_ahead(after)
        self.show(_changed(after, "may no longer", gone))

    def _tell_grants(self, card: StoredCard) -> Steps:
        """Every grant: what it allows, whether the card has it, and whether it has a use for it."""
        _, file = log.revision(card.name, card.revision)
        read = yield self.read_stored(card.name, file, card.grants)
        self.show(_table(card, read.report))

    def read_stored(self, label: str, file: CardFile, grants: Grants) -> "Deferred[ReadCard]":
        """The card of a stored file, read beside the game."""
        given = conf()
        return self.worked(
            f"Reading card {label}", lambda progress: read_stored(file, grants, given, progress)
        )

    def _show_report(self, change: CardChange, lines: Sequence[str], *, waits_still: bool) -> None:
        """Show the report, and remember till a reload that this builder was shown it."""
        end = shown.to_approve(change) if waits_still else ()
        self.show([*CARDS.report_head(change), *lines, *end])
        CARDS.saw_report(self.caller, change)

    def _report_in_force(self, card: StoredCard, read: ReadCard) -> Steps:
        """Tell that the file is the card in force, and what it holds."""
        again = yield self.read_stored(card.name, read.file, card.grants)
        same = (
            f"This very file is card {card.name}, revision {card.revision}, already; nothing was"
            " changed."
        )
        self.show([*wrap_text(same, WIDTH), *report_lines(again.report)])

    def _compared(
        self, old: StoredCard | None, read: ReadCard
    ) -> Generator[Deferred[Any], Any, list[str]]:
        """The report, and in which fields the file is not the card in force."""
        if old is None:
            return report_lines(read.report)
        told = yield self.worked(
            f"Comparing with card {old.name}", lambda _progress: differences(old, read)
        )
        return [*report_lines(read.report), "", *wrap_text(told, WIDTH)]


def _name_for(wanted: str) -> str:
    """The name a card gets; CommandError where no command could be told it."""
    try:
        return known_name(typeable_name(wanted))
    except ComponentValueError as error:
        raise CommandError(
            f"{error}; give it another: card/import <file> = <name>. Nothing was imported."
        ) from error


def _change(name: str, number: int) -> CardChange:
    return next(one for one in log.waiting(name) if one.number == number)
