"""A card that was read -> the report of what becomes of everything in it. Nothing is stored.

Here is what to look at twice, too; `findings` says what is not taken as it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from evennia_ai.engine.errors import ComponentValueError, FormatError
from evennia_ai.engine.foreign.documents import Progress, ignore_progress
from evennia_ai.engine.lorebook.activation.lore_budget import budget_of
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.regex.pattern import Refused, read_pattern
from evennia_ai.engine.prompt.components import NO_GRANTS, Grants
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter
from evennia_ai.formats.cards.card import Card, greetings, notes_in
from evennia_ai.formats.cards.components import DEFAULT_DEPTH, character_book
from evennia_ai.formats.cards.loading import DEFAULT_ADDRESS, CardImport
from evennia_ai.formats.cards.report.findings import clamped, ignored, neutralised
from evennia_ai.formats.cards.report.import_report import (
    BookAccount,
    Identity,
    ImportReport,
    TextPart,
)
from evennia_ai.formats.cards.report.parts import (
    MOST_GREETINGS,
    book_account,
    card_texts,
    grant_uses,
    greeting_parts,
    pattern_keys,
    speaks_as,
    text_parts,
)
from evennia_ai.formats.cards.suspicions import Raised, Sighting, grouped, in_name, in_text

_STEP: Final = 200  # entries between two words about the progress
# The share of a prompt that one text of a card may have before it is told.
_SHARE: Final = 4
# Characters of keys that are read as patterns; a card with more is told by its first ones.
_PATTERN_CHARACTERS: Final = 60_000


def looked_at(card: Card, book: Lorebook | None, *, progress: Progress) -> Iterator[Raised]:
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
) -> Iterator[Raised]:
    """The texts that take more than their share of a prompt of so many tokens."""
    if limit_tokens is None:
        return
    share = limit_tokens // _SHARE
    for part in parts:
        if part.tokens > share:
            yield _large(part.field, part.tokens, limit_tokens)
    if (always := always_tokens(parts, book)) > limit_tokens // 2:
        yield _large("all that is in every prompt", always, limit_tokens)
    budget = budget_of(rules, limit_tokens)
    if book is not None and book.always > budget:
        told = f"{book.always} tokens are always on, and the lore budget is {budget}"
        yield "oversized", Sighting(where="lore", excerpt=told)


def _large(where: str, tokens: int, limit: int) -> Raised:
    told = f"{tokens} tokens of {limit}"
    return "oversized", Sighting(where=where, excerpt=told)


def _in_lore(book: Lorebook, progress: Progress) -> Iterator[Raised]:
    total, patterns = len(book.entries), _Patterns()
    for entry in book.entries:
        if entry.index % _STEP == 0:
            progress("lore entries looked at", entry.index, total)
        if not entry.enabled:
            continue
        where = named(entry)
        yield from in_text(entry.template.source, where)
        yield from patterns.of(entry, where)
        if entry.is_usable:
            yield from _behaviour(entry, where)
    progress("lore entries looked at", total, total)


def named(entry: LoreEntry) -> str:
    """An entry as a place that can be found."""
    return f"lore entry {entry.uid}" + (f" ({entry.name[:40]})" if entry.name else "")


def _behaviour(entry: LoreEntry, where: str) -> Iterator[Raised]:
    """What an entry asks for beside its text."""
    if entry.gates.forced:
        yield "forced", Sighting(where=where, excerpt="@@activate")
    if entry.ignore_budget:
        yield "ignores_budget", Sighting(where=where)
    if entry.position == "depth" and (entry.depth or 0) <= 0 and not entry.from_oldest:
        yield "last_word", Sighting(where=where, excerpt="bottom")
    if speaks_as(entry):
        yield "speaks_as", Sighting(where=where, excerpt=f"role {entry.role}")


class _Patterns:
    """Reads keys that are regular expressions, each once and only so many characters of them."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._left = _PATTERN_CHARACTERS

    def of(self, entry: LoreEntry, where: str) -> Iterator[Raised]:
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


_USUAL_RULES: Final = ActivationRules()
_AND_MORE: Final = "and "  # begins the notice of how many more there are


def import_report(
    found: CardImport,
    *,
    grants: Grants = NO_GRANTS,
    counter: TokenCounter = ESTIMATE,
    limit_tokens: int | None = None,
    rules: ActivationRules = _USUAL_RULES,
    post_history_depth: int = DEFAULT_DEPTH,
    size_bytes: int | None = None,
    progress: Progress = ignore_progress,
) -> ImportReport:
    """The report of a card with these grants.

    `limit_tokens` is what a prompt has room for, None where that is not known; `rules` say how much
    of it lore may have, `post_history_depth` where instructions for after the history stand without
    their grant; `size_bytes` is the file's. FormatError: a text is too long for any prompt.
    """
    card = found.card
    parts = _parts(card, grants, counter, post_history_depth)
    progress("lorebook", 0, 1)
    book = character_book(card, grants=grants)
    progress("lorebook", 1, 1)
    account = None
    if book is not None:
        account = book_account(book, grants=grants, counter=counter, progress=progress)
    large = oversized(parts, account, limit_tokens=limit_tokens, rules=rules)
    return ImportReport(
        identity=_identity(found, size_bytes, 0 if book is None else len(book.entries)),
        grants=grants,
        counter=counter.name,
        limit_tokens=limit_tokens,
        prompt_tokens=always_tokens(parts, account),
        parts=parts,
        greetings=greeting_parts(card, counter=counter),
        book=account,
        ignored=tuple(ignored(found)),
        clamped=tuple(clamped(card, book)),
        neutralised=tuple(neutralised(card, book, grants=grants)),
        uses=grant_uses(card, book, grants=grants),
        suspicions=grouped((*looked_at(card, book, progress=progress), *large)),
        notices=(*found.notices, *_lore_notices(book)),
    )


def _parts(
    card: Card, grants: Grants, counter: TokenCounter, post_history_depth: int
) -> tuple[TextPart, ...]:
    try:
        return text_parts(
            card, grants=grants, counter=counter, post_history_depth=post_history_depth
        )
    except ComponentValueError as error:
        raise FormatError("card", f"card: a text of it fits into no prompt: {error}") from error


def _lore_notices(book: Lorebook | None) -> list[str]:
    """What was noticed when the book was read; decorators are told with what is neutralised."""
    notices = [notice for notice in (book.notices if book else ()) if ": @@" not in notice]
    if all(notice.startswith(_AND_MORE) for notice in notices):
        return []
    return [f"lorebook: {notice}" for notice in notices]


def _identity(found: CardImport, size_bytes: int | None, lore_entries: int) -> Identity:
    card = found.card
    held = sum(stored.resolved for stored in found.assets)
    plain = sum(stored.asset.uri == DEFAULT_ADDRESS for stored in found.assets)
    own = len([text for text in greetings(card) if text.strip()])
    return Identity(
        name=card.name,
        nickname=card.nickname,
        spec=card.spec,
        spec_version=card.spec_version,
        carrier=found.carrier,
        creator=card.creator,
        version=card.character_version,
        tags=card.tags,
        size_bytes=size_bytes,
        greetings=own,
        group_greetings=len([text for text in card.group_only_greetings if text.strip()]),
        assets_held=held,
        assets_missing=len(found.assets) - held - plain,
        lore_entries=lore_entries,
        creator_notes=notes_in(card),
    )
