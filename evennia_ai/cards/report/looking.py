"""Everything in a card that a builder should look at twice: its texts, its names, its lore."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from evennia_ai.cards.card import Card, greetings
from evennia_ai.cards.progress import Progress
from evennia_ai.cards.report.lore import is_usable, pattern_keys, speaks_as
from evennia_ai.cards.report.texts import MOST_GREETINGS, card_texts
from evennia_ai.cards.report.values import BookAccount, TextPart
from evennia_ai.cards.suspicions import Found, Sighting, in_name, in_text
from evennia_ai.lorebook.books import Lorebook
from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.patterns import Refused, read_pattern
from evennia_ai.lorebook.rules import ActivationRules

_STEP: Final = 200  # entries between two words about the progress
# The share of a prompt that one text of a card may have before it is told.
_SHARE: Final = 4
# Characters of keys that are read as patterns; a card with more is told by its first ones.
_PATTERN_CHARACTERS: Final = 60_000


def looked_at(card: Card, book: Lorebook | None, *, progress: Progress) -> Iterator[Found]:
    """What the card's names, texts and entries raise."""
    yield from in_name(card.name, "name")
    yield from in_name(card.nickname, "nickname")
    for where, text in card_texts(card):
        yield from in_text(text, where)
    if (there := len(greetings(card, group=True))) > MOST_GREETINGS:
        told = f"{there} of them; the first {MOST_GREETINGS} were looked at"
        yield "oversized", Sighting(where="greetings", excerpt=told)
    if book is not None:
        yield from _in_lore(book, progress)


def always_tokens(parts: Iterable[TextPart], book: BookAccount | None) -> int:
    """The tokens of what is in every prompt: the card's texts, and lore that waits for no key."""
    return sum(part.tokens for part in parts if part.place) + (book.always if book else 0)


def oversized(
    parts: Sequence[TextPart],
    book: BookAccount | None,
    *,
    limit_tokens: int | None,
    rules: ActivationRules,
) -> Iterator[Found]:
    """The texts that take more than their share of a prompt of so many tokens."""
    if limit_tokens is None:
        return
    share = limit_tokens // _SHARE
    for part in parts:
        if part.tokens > share:
            yield _large(part.field, part.tokens, limit_tokens)
    if (always := always_tokens(parts, book)) > limit_tokens // 2:
        yield _large("all that is in every prompt", always, limit_tokens)
    budget = rules.budget(limit_tokens)
    if book is not None and book.always > budget:
        told = f"{book.always} tokens are always on, and the lore budget is {budget}"
        yield "oversized", Sighting(where="lore", excerpt=told)


def _large(where: str, tokens: int, limit: int) -> Found:
    told = f"{tokens} tokens of {limit}"
    return "oversized", Sighting(where=where, excerpt=told)


def _in_lore(book: Lorebook, progress: Progress) -> Iterator[Found]:
    total, patterns = len(book.entries), _Patterns()
    for entry in book.entries:
        if entry.index % _STEP == 0:
            progress("lore entries looked at", entry.index, total)
        if not entry.enabled:
            continue
        where = named(entry)
        yield from in_text(entry.template.source, where)
        yield from patterns.of(entry, where)
        if is_usable(entry):
            yield from _behaviour(entry, where)
    progress("lore entries looked at", total, total)


def named(entry: LoreEntry) -> str:
    """An entry as a place that can be found."""
    return f"lore entry {entry.uid}" + (f" ({entry.name[:40]})" if entry.name else "")


def _behaviour(entry: LoreEntry, where: str) -> Iterator[Found]:
    """What an entry asks for beside its text."""
    if entry.gates.forced:
        yield "forced", Sighting(where=where, excerpt="@@activate")
    if entry.ignore_budget:
        yield "ignores_budget", Sighting(where=where)
    if entry.position == "depth" and (entry.depth or 0) <= 0 and not entry.from_oldest:
        yield "last_word", Sighting(where=where, excerpt=f"depth {entry.depth}")
    if speaks_as(entry):
        yield "speaks_as", Sighting(where=where, excerpt=f"role {entry.role}")


class _Patterns:
    """Reads keys that are regular expressions, each once and only so many characters of them."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._left = _PATTERN_CHARACTERS

    def of(self, entry: LoreEntry, where: str) -> Iterator[Found]:
        """One sighting for an entry with such keys, of a refused one if it has one."""
        keys = pattern_keys(entry)
        if not keys:
            return
        told = [(key, self._problem(key)) for key in keys]
        key, problem = next((each for each in told if each[1]), told[0])
        shown = key if len(key) <= 40 else f"{key[:37]}..."
        yield "regex", Sighting(where=where, excerpt=f"{shown} {problem}".rstrip())

    def _problem(self, key: str) -> str:
        """Why a key does not run, "" where it does or nobody looked."""
        if key not in self._known:
            if self._left < len(key):
                return ""
            self._left -= len(key)
            read = read_pattern(key)
            self._known[key] = read.reason if isinstance(read, Refused) else ""
        return self._known[key]
