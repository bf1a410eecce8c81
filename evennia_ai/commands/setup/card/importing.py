"""The switches of `card` that take a file in: read it, report on it, approve it or not.

An import changes nothing until somebody approves it, and what is approved is the very file that
the report was about: where it could be another one, its number is asked for.
"""

from collections.abc import Generator, Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.cards.report.import_report import report_lines
from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.folder import offered, path_in, size_of
from evennia_ai.commands.setup.card import shown
from evennia_ai.commands.setup.card import shown as named
from evennia_ai.commands.setup.card.grants import reports_seen, saw_report, typed_grants
from evennia_ai.commands.setup.card.reading import ReadCard, differences, reader
from evennia_ai.commands.strict import CommandError
from evennia_ai.errors import ComponentValueError
from evennia_ai.prompt.components import NO_GRANTS
from evennia_ai.settings.conf import conf
from evennia_ai.store.authored import card_revisions as log
from evennia_ai.store.authored import cards as store
from evennia_ai.store.authored.card_revisions import CardChange
from evennia_ai.store.authored.cards import StoredCard, greeters_of, known_name, typeable_name
from evennia_ai.text.columns import WIDTH, wrapped

SUFFIXES: Final = (".json", ".png", ".apng", ".charx", ".jpg", ".jpeg")
_APPROVE: Final = "card/approve <name>[/<number>] [= <grant>, <grant>...]"


class CardImports(CardWork):
    """Everything between a file and a card that is in force."""

    @waits
    def import_file(self) -> Steps:
        """Let the card of a file wait; it is read whole before anything is written."""
        folder = conf().card_folder
        if not self.lhs:
            self.show("\n".join(offered(folder, suffixes=SUFFIXES)))
            return
        if self.rhs is not None and not self.rhs:
            raise CommandError("Usage: card/import <file> [= <name>]")
        path = path_in(folder, self.lhs, command="card/import", suffixes=SUFFIXES)
        cards = reader(conf())
        reading = f"Reading {path.name} ({shown.size_in_words(size_of(path))})"
        work = self.worked(reading, lambda progress: cards.path(path, progress))
        self.say(f"{reading}...")
        read = yield work
        name = _name_for(self.rhs or read.found.card.name)
        old = store.card_or_none(name)
        if old is not None and old.sha256 == read.sha256 and not log.waiting(name):
            yield from self._report_in_force(old, read)
            return
        lines = yield from self._compared(old, read)
        number = store.import_card(name, read.file, by=self.typed_by)
        if number is None:
            raise CommandError(f"Somebody has approved this very file as card {name} meanwhile.")
        change = _change(name, number)
        self._show_report(change, lines, waits_still=True)

    @waits
    def report(self) -> Steps:
        """Show the report of an import that waits, or of any revision, again."""
        text = self.wanted("card/report <name>[/<number>]")
        change = named.reported(text)
        _, file = log.revision(change.name, change.number)
        is_import = change.action == "imported"
        grants = NO_GRANTS if is_import else change.grants
        cards = reader(conf())
        read = yield self.worked(
            f"Reading card {change.name}, revision {change.number}",
            lambda progress: cards.stored(file, grants, progress),
        )
        old = store.card_or_none(change.name) if is_import else None
        lines = yield from self._compared(old, read)
        waits_still = any(one.number == change.number for one in log.waiting(change.name))
        self._show_report(change, lines, waits_still=waits_still)

    def approve(self) -> None:
        """Put an import in force with exactly the grants that were typed."""
        text = self.wanted(_APPROVE)
        if self.rhs is not None and not self.rhs:
            raise CommandError(f"Usage: {_APPROVE}")
        change = named.import_named(text, read=reports_seen(self.caller))
        grants = NO_GRANTS if self.rhs is None else typed_grants(self, self.rhs)
        old = store.card_or_none(change.name)
        others = [one for one in log.waiting(change.name) if one.number != change.number]
        greeters = greeters_of(change.name)
        card = store.approve(change.name, change.number, grants=grants, by=self.typed_by)
        self.read_ahead(card)
        told = shown.approved(card, old, change, others)
        self.show("\n".join([*told, *shown.silenced(card.name, greeters)]))

    def reject(self) -> None:
        """Let no import of a card wait any longer."""
        usage = "card/reject <name>"
        name = named.plain_name(self.wanted(usage), usage)
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}")
        imports = log.waiting(name)
        if not store.reject(name, by=self.typed_by):
            raise CommandError(f"No import of a card '{name}' waits.")
        card = store.card_or_none(name)
        left = f"revision {card.revision} is in force as before" if card else "none is in force"
        gone = "; ".join(named.import_in_words(one) for one in imports[-6:])
        self.say(f"Rejected what waited of card {name}: {gone}. Of this card {left}.")

    def _show_report(self, change: CardChange, lines: Sequence[str], *, waits_still: bool) -> None:
        """Show the report, and remember till a reload that this builder was shown it."""
        end = shown.to_approve(change) if waits_still else ()
        self.show("\n".join([*shown.report_head(change), *lines, *end]))
        saw_report(self.caller, change)

    def _report_in_force(self, card: StoredCard, read: ReadCard) -> Steps:
        """Tell that the file is the card in force, and what it holds."""
        cards = reader(conf())
        again = yield self.worked(
            f"Reading card {card.name}",
            lambda progress: cards.stored(read.file, card.grants, progress),
        )
        same = (
            f"This very file is card {card.name}, revision {card.revision}, already; nothing was"
            " changed."
        )
        self.show("\n".join([*wrapped(same, WIDTH), *report_lines(again.report)]))

    def _compared(
        self, old: StoredCard | None, read: ReadCard
    ) -> Generator[Deferred[Any], Any, list[str]]:
        """The report, and in which fields the file is not the card in force."""
        if old is None:
            return report_lines(read.report)
        told = yield self.worked(
            f"Comparing with card {old.name}", lambda _progress: differences(old, read)
        )
        return [*report_lines(read.report), "", *wrapped(told, WIDTH)]


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
