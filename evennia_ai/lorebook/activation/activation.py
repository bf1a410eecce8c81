"""Activation: which entries are active, what they say, and why the others are not.

Pure. The books are looked at together, in passes (`run`). In each one every entry that something
concerns is judged (`judging`), groups choose (`groups`), chance is rolled once, and what is left
competes for the lore budget (`lore_budget`). Each entry of each book gets one verdict; the words of
it are put together when they are read. Nothing here costs by the size of a book.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from evennia_ai.lorebook.activation.active_books import ActiveBook, active_books_of, entry_finder
from evennia_ai.lorebook.activation.candidate import Candidate, placed
from evennia_ai.lorebook.activation.places import ActiveEntry
from evennia_ai.lorebook.activation.reasons import Reason, message_called
from evennia_ai.lorebook.activation.run import ActivationRun, Decision, EntryRef, RunInputs
from evennia_ai.lorebook.activation.timers import NO_STATE, Clock, LoreState, Timers, is_remembered
from evennia_ai.lorebook.activation.unmatched import Unmatched, unmatched_of, unmatched_verdicts
from evennia_ai.lorebook.book import Lorebook
from evennia_ai.lorebook.conditions import Facts
from evennia_ai.lorebook.decorators import Decorator
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scan.window import Scan
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Called, Verdict

__all__ = ["Activation", "ActiveEntry", "Scan", "Unmatched", "activate", "decorators_of"]

_NO_FACTS: Final[Facts] = {}
_START: Final = Clock()


class Activation:
    """The entries that go into the prompt, in the order of their activation, and all verdicts.

    `after` is what lore remembers once this prompt is really sent.
    """

    def __init__(
        self,
        entries: tuple[ActiveEntry, ...] = (),
        *,
        after: LoreState = NO_STATE,
        active_books: Sequence[ActiveBook] = (),
        decisions: Mapping[EntryRef, Decision] | None = None,
        called: Called = message_called,
    ) -> None:
        self.entries = entries
        self.after = after
        self._books = active_books
        self._decisions = decisions or {}
        self._called = called

    def calling(self, called: Called) -> "Activation":
        """The same, whose verdicts call messages as `called` says."""
        return Activation(
            self.entries,
            after=self.after,
            active_books=self._books,
            decisions=self._decisions,
            called=called,
        )

    @cached_property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts on entries that something in the conversation concerned."""
        return tuple(self._verdict(ref) for ref in sorted(self._decisions))

    @cached_property
    def silent(self) -> tuple[Unmatched, ...]:
        """All other entries, told in bulk: those of one book that share a reason."""
        return tuple(unmatched for book in self._books for unmatched in unmatched_of(book))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict on every entry of every book, in the order of the books and their entries."""
        made = [list(unmatched_verdicts(book)) for book in self._books]
        for rank, index in self._decisions:
            made[rank][index] = self._verdict((rank, index))
        return tuple([verdict for book in made for verdict in book])

    def _verdict(self, ref: EntryRef) -> Verdict:
        """The verdict on one entry: the last one again where it decided the same."""
        decision = self._decisions[ref]
        first = decision.reasons[0]
        if not isinstance(first, Candidate):
            return self._worded(ref, decision)
        known = (decision, self._where(first), self._given_up(ref))
        if first.told is None or first.told[0] != known:
            first.told = (known, self._worded(ref, decision))
        return first.told[1]

    def _given_up(self, ref: EntryRef) -> tuple[Reason, ...]:
        """Which of the entry's patterns were given up in which texts, the first few of them."""
        book, index = self._books[ref[0]], ref[1]
        return book.given_up(index) if book.window.given_up else ()

    def _where(self, one: Candidate) -> str:
        """What the message is called in which its key was found, "" where that was in none."""
        found = one.judgement.found
        return "" if found is None or found.place < 0 else self._called(found.place)

    def _said(self, reason: object) -> str:
        if isinstance(reason, Candidate):
            reason = reason.judgement.reason
        return str(reason.calling(self._called) if isinstance(reason, Reason) else reason)

    def _worded(self, ref: EntryRef, decision: Decision) -> Verdict:
        rank, index = ref
        cause = self._said(decision.reasons[0])
        return Verdict(
            stage="activate",
            item=self._books[rank].entries[index].origin,
            kept=decision.kept,
            reason="; ".join(
                [cause, *map(self._said, (*decision.reasons[1:], *self._given_up(ref)))]
            ),
            tokens=decision.tokens,
            cause=cause if decision.kept else None,
        )


def activate(
    books: Iterable[Lorebook],
    scan: Scan,
    *,
    rules: ActivationRules,
    limit_tokens: int,
    counter: TokenCounter,
    values: Mapping[str, str],
    dice: Dice,
    state: LoreState = NO_STATE,
    clock: Clock = _START,
    facts: Facts = _NO_FACTS,
) -> Activation:
    """What the books give for this scan; `limit_tokens` is the limit of the whole prompt.

    `state` is what the turn before left. Equal arguments give equal results.
    """
    active_books = active_books_of(books, scan, rules=rules, values=values, dice=dice)
    before, entry_of = NO_STATE if rules.dry_run else state, entry_finder(active_books)
    timers = Timers(before, clock=clock, rules=rules, entry_of=entry_of)
    run = ActivationRun(
        active_books,
        RunInputs(
            scan=scan,
            rules=rules,
            timers=timers,
            facts=facts,
            values=values,
            dice=dice,
            counter=counter,
            limit_tokens=limit_tokens,
        ),
    )
    run.make_passes()
    remembered = {one.identity: one.entry for one in run.active if is_remembered(one.entry)}
    return Activation(
        placed(run.active, rules=rules, spot=run.spot_beside),
        after=state if rules.dry_run else timers.after(remembered),
        active_books=active_books,
        decisions=run.decisions,
    )


def decorators_of(books: Iterable[Lorebook]) -> dict[str, tuple[Decorator, ...]]:
    """For each entry's label the decorators that count, after fallbacks."""
    return {
        f"{book.label}#{entry.uid}": entry.decorators for book in books for entry in book.entries
    }
