"""The books of one activation run in the order they are asked, each with what it sees.

An active book lives for one run. What was worked out for a book and stays right (its index of keys,
its texts, its labels) is kept with the book and shared by all NPCs.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.lorebook.activation.candidate import (
    CANDIDATES,
    JUDGED,
    Candidate,
    EntryReason,
    Judgement,
    Ruling,
    given_up,
)
from evennia_ai.engine.lorebook.activation.followed import Followed, WokenByKeys
from evennia_ai.engine.lorebook.activation.lore_budget import survival
from evennia_ai.engine.lorebook.activation.timers import Timers, is_remembered
from evennia_ai.engine.lorebook.book import (
    ATTACH_RANK,
    IDENTITIES,
    LABELS,
    Lorebook,
    identities_of,
    index_of,
    labels_of,
    missing,
)
from evennia_ai.engine.lorebook.entry import LoreEntry, Mention
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules
from evennia_ai.engine.lorebook.scan.hit_cache import EVENT
from evennia_ai.engine.lorebook.scan.key_index import BookIndex, book_index_of
from evennia_ai.engine.lorebook.scan.regex.pattern import TURN_STEPS
from evennia_ai.engine.lorebook.scan.window import MOST_PLACES, Scan, Window
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.fragments import Beside
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.templates.template import Template
from evennia_ai.engine.prompt.templates.work import COUNTED_A_UNIT, Meter, OutOfWorkError
from evennia_ai.engine.prompt.tokens import TokenCounter

_LEVELS: Final = Slot[tuple[int, ...]]("delay levels")


class _FilledIn(NamedTuple):
    """The text of an entry with its macros filled in, and what that took."""

    seen: object
    """What it was rendered with."""
    text: str
    tokens: int
    work: int


_TEXTS: Final = Slot[dict[int, _FilledIn]]("texts")
"""The texts of a book by the index of their entry."""


_BY_NOTHING: Final = Beside(None, "after the newest message, for none has a key of it")
_BY_EVENT: Final = Beside(None, "after the newest message, for the event has a key of it")


_FOLLOWED: Final = Slot[Followed]("followed")
# Passes that are followed; more are rare.
_MOST_FOLLOWED: Final = 8
# No book has more; it tells apart the numbers of entries of several books.
_MOST_ENTRIES: Final = 10**9


class ActiveBook:
    """One book in one run.

    `rank` is its place among the books, `standing` what sorts its entries against those of other
    books. `asked` are the indexes of the entries that something concerns; it only grows. `depth` is
    the book's scan depth, `seen` the one of the last pass, larger where the scan was widened. Of
    the entries that nothing but keys wakes those are not asked that are `followed`. `judgements`
    and `rulings` say what became of each entry that something concerned, `settled` are those of
    them that have the last word.
    """

    def __init__(
        self,
        book: Lorebook,
        *,
        rank: int,
        standing: tuple[int, int],
        key_index: BookIndex,
        scan: Scan,
        rules: ActivationRules,
        steps: int,
    ) -> None:
        self.lorebook = book
        self.entries = book.entries
        self.grants = book.grants
        self.rank = rank
        self.standing = standing
        self.key_index = key_index
        self.rules = rules
        self.window = Window(
            scan,
            key_index,
            of=(book.label, book.attach, rules.strategy),
            include_names=rules.include_names,
            steps=steps,
        )
        self.depth = rules.scan_depth if book.scan_depth is None else book.scan_depth
        self.seen = self.depth
        self.recursive = rules.recursive if book.recursive is None else book.recursive
        self.labels = book.memo.get(LABELS) or labels_of(book)
        self.identities = book.memo.get(IDENTITIES) or identities_of(book)
        self.judged = self.window.memo.setdefault(JUDGED, {})
        self.candidates = self.window.memo.setdefault(CANDIDATES, {})
        self.asked: set[int] = set()
        self.settled: set[int] = set()
        self.judgements: dict[int, Judgement] = {}
        self.rulings: dict[int, Ruling] = {}
        self.followed: Followed | None = None
        self.works: dict[int, int] = {}
        """The work of the entries whose macros were filled in; each is paid once in a run."""

    def ask(self, indexes: Iterable[int]) -> None:
        """Have these entries judged."""
        self.asked.update(indexes)

    def ask_owners(self, keys: Iterable[int]) -> None:
        """Have the entries judged that these keys may wake."""
        owners = self.key_index.owners
        for key in keys:
            self.asked.update(owners.get(key, ()))

    def ask_identities(self, identities: Iterable[str]) -> None:
        """Have these entries judged, as far as they are in this book."""
        for identity in identities:
            index = index_of(self.lorebook, identity)
            if index is not None:
                self.asked.add(index)

    def follow(self, made_for: object, values: Mapping[str, str]) -> None:
        """Go on from what the turn before left of what keys alone decide, where it is still so."""
        known = self.window.memo.get(_FOLLOWED)
        if (
            known is None
            or known.made_for != made_for
            or any(values.get(name) != value for name, value in known.read.items())
        ):
            known = self.window.memo[_FOLLOWED] = Followed(made_for)
        self.followed = known

    def unfollow(self) -> None:
        """From now on have each entry judged that a key of stands somewhere."""
        self.followed = None
        self.ask_owners(self.window.standing())
        self.ask_owners(self.window.fed)

    def forget_followed(self) -> None:
        """Let the next run judge everything again; one that was broken off left it half done."""
        self.window.memo.pop(_FOLLOWED, None)

    def pay_for(self, woken: WokenByKeys, meter: Meter) -> None:
        """Pay for the texts of the candidates that are kept from the turn before."""
        kept = woken.works
        fresh = kept.keys() - self.works.keys() if self.works else kept
        meter.pay(sum(map(kept.__getitem__, fresh)))
        self.works.update(kept)

    def woken(self, number: int) -> WokenByKeys | None:
        """What keys alone decide in the pass of this number; stale where keys stand elsewhere."""
        if self.followed is None:
            return None
        passes = self.followed.passes
        if number > min(_MOST_FOLLOWED, len(passes) + 1):
            self.unfollow()
            return None
        if number > len(passes):
            passes.append(WokenByKeys())
        woken = passes[number - 1]
        owners = self.key_index.owners
        for key in woken.changed(self.window) if number == 1 else woken.newly_fed(self.window):
            woken.stale.update(owners.get(key, ()))
        return woken

    def tell_later(self, index: int, number: int) -> None:
        """An entry came to or left the pass of this number: later ones judge it again."""
        if self.followed is not None:
            for later in self.followed.passes[number:]:
                later.stale.add(index)

    def reads(self, names: Iterable[str], values: Mapping[str, str]) -> None:
        """A text of those that are followed reads these values."""
        if self.followed is not None:
            self.followed.read.update((name, values.get(name)) for name in names)

    def say(self, index: int, judgement: Judgement) -> None:
        """What is to be said of an entry that is no candidate."""
        self.judgements[index] = judgement
        self.rulings.pop(index, None)

    def is_woken(self, index: int, keys: Collection[int], number: int) -> bool:
        """Whether a key wakes an entry in the pass of this number, and none did in one before."""
        if self.followed is None:
            return False
        if number == 1:
            return self.window.stands(keys)
        if self.window.fed.keys().isdisjoint(keys):
            return False
        earlier = self.followed.passes[: number - 1]
        return not any(index in woken.judgements for woken in earlier)

    def given_up(self, index: int) -> tuple[EntryReason, ...]:
        """Where patterns of an entry were not looked for to the end; the first few places."""
        if not self.window.given_up:
            return ()
        keys, places = self.key_index.entry_keys[index], self.window.given_up
        told = (
            EntryReason(given_up, (self.key_index.pattern_of(number).written, where, why))
            for number in dict.fromkeys(keys.numbers)
            for where, why in places.get(number, ())
        )
        return tuple(islice(told, MOST_PLACES))

    def spot_of(self, entry: LoreEntry, history: History) -> tuple[int, Beside]:
        """Where an entry stands that asks for the message with its key: depth, and beside what.

        An entry with a key in the event stands before that, after the newest message; so does one
        that no message has a key of, because something else woke it.
        """
        mention = entry.mention or Mention()
        place = self._mention(entry, mention)
        if place is None or place == EVENT:
            return 0, _BY_NOTHING if place is None else _BY_EVENT
        first = place if mention.side == "before" else place + 1
        told = f"right {mention.side} {{}}, which has a key of it"
        return history.counted(first), Beside(place, told)

    def _mention(self, entry: LoreEntry, mention: Mention) -> int | None:
        """The newest message with one of the keys, or the oldest of those that the entry sees."""
        keys = self.key_index.entry_keys[entry.index].primary
        depth = self.seen if entry.scan_depth is None else entry.scan_depth
        found: int | None = None
        for age, place in self.window.mentions(keys, movement=entry.hears_movement):
            if found is not None and age >= depth:
                break
            found = place
            if mention.message == "newest":
                break
        return found

    @property
    def levels(self) -> tuple[int, ...]:
        """The delay levels of its entries."""
        known = self.lorebook.memo.get(_LEVELS)
        if known is None:
            found = {entry.recursion.delay_level for entry in self.entries} - {0}
            known = self.lorebook.memo[_LEVELS] = tuple(sorted(found))
        return known

    def place(self, entry: LoreEntry) -> tuple[float, ...]:
        """The entry's place in the processing order of all books."""
        high_first = PRESET_FLAGS[self.rules.rules].high_order_first
        order = -entry.order if high_first else entry.order
        first, among_equals = self.standing
        return first, order, among_equals, self.rank, entry.index

    def candidate(
        self,
        index: int,
        found: Judgement,
        *,
        values: Mapping[str, str],
        dice: Dice,
        counter: TokenCounter,
        timers: Timers,
        meter: Meter,
    ) -> Candidate | None:
        """The entry with its text; None where it has none and that makes it silent.

        OutOfWorkError: its macros need more work than is left.
        """
        known = self.candidates.get(index)
        if known is not None and not known.is_for(
            self.lorebook, rank=self.rank, counter=counter, sticky=found.sticky
        ):
            known = None
        if known is not None and known.is_constant_text and not known.work:
            return known
        text, tokens, work = self._text(index, values, dice, counter, meter)
        if not text.strip() and not self.rules.flags.empty_is_active:
            return None
        if known is not None and known.text == text:
            return known
        rests = self.identities[index] in timers.resting
        made = self._made(index, text, tokens, work, counter, sticky=found.sticky, rests=rests)
        self.candidates[index] = made
        return made

    def _made(
        self,
        index: int,
        text: str,
        tokens: int,
        work: int,
        counter: TokenCounter,
        *,
        sticky: bool,
        rests: bool,
    ) -> Candidate:
        entry, place, grants = self.entries[index], self.place(self.entries[index]), self.grants
        tier, yields = survival(
            entry, vouched="lore_budget" in grants, sticky=sticky, rules=self.rules
        )
        return Candidate(
            number=self.rank * _MOST_ENTRIES + index,
            place=place,
            tier=tier,
            yields=yields,
            rank=self.rank,
            book=self.lorebook,
            entry=entry,
            label=self.labels[index],
            identity=self.identities[index],
            sticky=sticky,
            rests=rests,
            text=text,
            searched=text + self.key_index.entry_keys[index].hidden,
            tokens=tokens,
            work=work,
            counter=counter,
            lacking=() if grants == ALL_GRANTS else missing(entry, grants),
            is_lasting=not entry.timing.cooldown,  # with one, whether it rests may change
            is_constant_text=not (entry.template.names or entry.template.rolls),
            is_steady=entry.chance >= 100 and not entry.grouping.names,
            is_remembered=is_remembered(entry),
        )

    def _text(
        self,
        index: int,
        values: Mapping[str, str],
        dice: Dice,
        counter: TokenCounter,
        meter: Meter,
    ) -> tuple[str, int, int]:
        """Return an entry's text, its tokens and the work that it takes.

        The text is kept while what it reads stays the same. Its work is paid in each run, so that
        what was kept decides nothing.
        """
        template = self.entries[index].template
        seen: object = counter
        if template.names or template.rolls:
            read = [values.get(name) for name in template.names]
            seen = (read, template.rolls and dice, counter)
        texts = self.lorebook.memo.setdefault(_TEXTS, {})
        known = texts.get(index)
        if known is None or known.seen != seen:
            left = meter.left
            try:
                text = self._filled_in(template, values, dice, meter)
            except OutOfWorkError:
                meter.left = left if meter.left == left else 0  # as `pay_whole` does
                raise
            known = _FilledIn(seen, text, counter.count(text), left - meter.left)
            texts[index] = known
        elif known.work and index not in self.works:
            meter.pay_whole(known.work, at_least=template.work)
        if known.work:
            self.works[index] = known.work
        return known.text, known.tokens, known.work

    def _filled_in(
        self, template: Template, values: Mapping[str, str], dice: Dice, meter: Meter
    ) -> str:
        if not template.reads:
            return template.source
        try:
            text = template.render(values, dice, meter=meter)
        except OutOfWorkError:
            raise
        except TemplateError:  # what makes too much stays as it is written
            text = template.source
        meter.pay(len(text) // COUNTED_A_UNIT)
        return text


def active_books_of(
    books: Iterable[Lorebook],
    scan: Scan,
    *,
    rules: ActivationRules,
    values: Mapping[str, str],
    dice: Dice,
) -> tuple[ActiveBook, ...]:
    """The books in the order they are asked: chat before the others, which the strategy sorts.

    Those that are equal to the strategy go by their attachment, then as they were given.
    """
    ordered = sorted(books, key=lambda book: _standing(book, rules))
    indexes = [book_index_of(book, rules=rules, values=values, dice=dice) for book in ordered]
    with_patterns = sum(index.has_patterns for index in indexes)
    return tuple(
        ActiveBook(
            book,
            rank=rank,
            standing=_standing(book, rules),
            key_index=key_index,
            scan=scan,
            rules=rules,
            steps=TURN_STEPS // max(1, with_patterns),
        )
        for rank, (book, key_index) in enumerate(zip(ordered, indexes, strict=True))
    )


def entry_finder(active_books: Sequence[ActiveBook]) -> Callable[[str], LoreEntry | None]:
    """A function that gives the entry of an identity, None where no book here has it."""

    def find(identity: str) -> LoreEntry | None:
        for book in active_books:
            index = index_of(book.lorebook, identity)
            if index is not None:
                return book.entries[index]
        return None

    return find


def _standing(book: Lorebook, rules: ActivationRules) -> tuple[int, int]:
    """What comes before an entry's order, and what decides among equal orders."""
    rank = ATTACH_RANK[book.attach]
    narrow_first = PRESET_FLAGS[rules.rules].ties_narrow_first
    return _STANDINGS[rules.strategy](rank), rank if narrow_first else -rank


# Chat books come first in every strategy.
_STANDINGS: Mapping[str, Callable[[int], int]] = {
    "evenly": lambda rank: min(rank, 1),
    "character_first": lambda rank: rank,
    "global_first": lambda rank: -rank if rank else -max(ATTACH_RANK.values()) - 1,
}
