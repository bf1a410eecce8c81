"""Build the import report of a card, with its warnings. Nothing is stored."""

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
from evennia_ai.formats.cards.card import Card, creator_notes_for, greetings
from evennia_ai.formats.cards.components import DEFAULT_DEPTH, character_book
from evennia_ai.formats.cards.content_warnings import (
    FoundWarning,
    WarningPlace,
    find_name_warnings,
    find_text_warnings,
    group_warnings,
)
from evennia_ai.formats.cards.loading import DEFAULT_ADDRESS, CardImport
from evennia_ai.formats.cards.report.adjustments import (
    list_clamped,
    list_ignored,
    list_neutralised,
)
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

# The number of lore entries after which progress is reported.
_STEP: Final = 200
# A text of the card that takes more than 1/4 of a prompt is reported.
_SHARE: Final = 4
# Parsing regular expressions is slow, so keys are parsed only up to this total number of
# characters.
_PATTERN_CHARACTERS: Final = 60_000
_USUAL_RULES: Final = ActivationRules()
_AND_MORE: Final = "and "  # the first word of the notice that counts omitted notices


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
    """Build the import report of a card.

    Args:
        grants: the grants that the report assumes.
        limit_tokens: the size of a prompt, None if unknown.
        rules: decide how much of a prompt lore may take.
        post_history_depth: the depth of post-history instructions without a grant for them.
        size_bytes: the size of the card's file.

    Raises:
        FormatError: a text is too long for any prompt.
    """
    card = found.card
    try:
        parts = text_parts(
            card, grants=grants, counter=counter, post_history_depth=post_history_depth
        )
    except ComponentValueError as error:
        raise FormatError("card", f"card: a text is too long for any prompt: {error}") from error
    progress("lorebook", 0, 1)
    book = character_book(card, grants=grants)
    progress("lorebook", 1, 1)
    account = None
    if book is not None:
        account = book_account(book, grants=grants, counter=counter, progress=progress)
    warnings = [*_find_warnings(card, book, progress=progress)]
    if limit_tokens is not None:
        warnings += _find_oversized(parts, account, limit_tokens=limit_tokens, rules=rules)
    return ImportReport(
        identity=_identity(found, size_bytes, 0 if book is None else len(book.entries)),
        grants=grants,
        counter=counter.name,
        limit_tokens=limit_tokens,
        prompt_tokens=_always_tokens(parts, account),
        parts=parts,
        greetings=greeting_parts(card, counter=counter),
        book=account,
        ignored=tuple(list_ignored(found)),
        clamped=tuple(list_clamped(card, book)),
        neutralised=tuple(list_neutralised(card, book, grants=grants)),
        uses=grant_uses(card, book, grants=grants),
        warnings=group_warnings(warnings),
        notices=(*found.notices, *_lore_notices(book)),
    )


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
        creator_notes=creator_notes_for(card),
    )


def _always_tokens(parts: Iterable[TextPart], book: BookAccount | None) -> int:
    """Return the tokens of a card in every prompt: its texts and its always active lore."""
    return sum(part.tokens for part in parts if part.place) + (book.always if book else 0)


def _find_warnings(
    card: Card, book: Lorebook | None, *, progress: Progress
) -> Iterator[FoundWarning]:
    """Yield the warnings about the card's names, texts and lore entries."""
    yield from find_name_warnings(card.name, "name")
    yield from find_name_warnings(card.nickname, "nickname")
    for where, text in card_texts(card):
        yield from find_text_warnings(text, where)
    if (number := len(greetings(card, group=True))) > MOST_GREETINGS:
        excerpt = f"{number} greetings; only the first {MOST_GREETINGS} were searched"
        yield "oversized", WarningPlace(where="greetings", excerpt=excerpt)
    if book is None:
        return
    total, patterns = len(book.entries), _PatternChecker()
    for entry in book.entries:
        if entry.index % _STEP == 0:
            progress("lore entries searched", entry.index, total)
        if not entry.enabled:
            continue
        where = f"lore entry {entry.uid}" + (f" ({entry.name[:40]})" if entry.name else "")
        yield from find_text_warnings(entry.template.source, where)
        yield from patterns.check_entry(entry, where)
        if entry.is_usable:
            yield from _find_in_settings(entry, where)
    progress("lore entries searched", total, total)


def _find_in_settings(entry: LoreEntry, where: str) -> Iterator[FoundWarning]:
    """Yield warnings about the activation, budget, place and role that a lore entry asks for."""
    if entry.gates.forced:
        yield "forced", WarningPlace(where=where, excerpt="@@activate")
    if entry.ignore_budget:
        yield "ignores_budget", WarningPlace(where=where)
    if entry.position == "depth" and (entry.depth or 0) <= 0 and not entry.from_oldest:
        yield "last_word", WarningPlace(where=where, excerpt="bottom")
    if speaks_as(entry):
        yield "speaks_as", WarningPlace(where=where, excerpt=f"role {entry.role}")


class _PatternChecker:
    """A checker of lore keys that are regular expressions; it parses equal keys only once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._left = _PATTERN_CHARACTERS

    def check_entry(self, entry: LoreEntry, where: str) -> Iterator[FoundWarning]:
        """Yield at most one warning for an entry with regular expressions as keys.

        The warning names the first invalid key, else the first key.
        """
        keys = pattern_keys(entry)
        if not keys:
            return
        checked = [(key, self._problem(key)) for key in keys]
        key, problem = next((each for each in checked if each[1]), checked[0])
        shown = key if len(key) <= 40 else f"{key[:37]}..."
        yield "regex", WarningPlace(where=where, excerpt=f"{shown} {problem}".rstrip())

    def _problem(self, key: str) -> str:
        """Return why a key is no valid regular expression; "" if it is valid.

        A report parses only a limited number of characters of keys. After that, all keys count as
        valid.
        """
        if key not in self._known:
            if self._left < len(key):
                return ""
            self._left -= len(key)
            read = read_pattern(key)
            self._known[key] = read.reason if isinstance(read, Refused) else ""
        return self._known[key]


def _find_oversized(
    parts: Sequence[TextPart],
    book: BookAccount | None,
    *,
    limit_tokens: int,
    rules: ActivationRules,
) -> Iterator[FoundWarning]:
    """Yield a warning for each text of a card that takes more than its share of a prompt."""
    sizes = [(part.field, part.tokens, limit_tokens // _SHARE) for part in parts]
    always = _always_tokens(parts, book)
    sizes.append(("all texts that are in every prompt", always, limit_tokens // 2))
    for where, tokens, share in sizes:
        if tokens > share:
            excerpt = f"{tokens} tokens of {limit_tokens}"
            yield "oversized", WarningPlace(where=where, excerpt=excerpt)
    budget = budget_of(rules, limit_tokens)
    if book is not None and book.always > budget:
        excerpt = f"{book.always} tokens are in every prompt, and the lore budget is {budget}"
        yield "oversized", WarningPlace(where="lore", excerpt=excerpt)


def _lore_notices(book: Lorebook | None) -> list[str]:
    """Return the notices on reading a card's book, except those on decorators.

    The import report lists ignored decorators elsewhere.
    """
    notices = [notice for notice in (book.notices if book else ()) if ": @@" not in notice]
    if all(notice.startswith(_AND_MORE) for notice in notices):
        return []
    return [f"lorebook: {notice}" for notice in notices]
