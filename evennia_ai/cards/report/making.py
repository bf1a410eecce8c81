"""A card that was read -> the report of what becomes of everything in it. Nothing is stored."""

from typing import Final

from evennia_ai.cards.assets import DEFAULT_ADDRESS
from evennia_ai.cards.card import Card, greetings, notes_in
from evennia_ai.cards.components import DEFAULT_DEPTH, character_book
from evennia_ai.cards.loading import CardImport
from evennia_ai.cards.report.findings import (
    always_tokens,
    clamped,
    ignored,
    looked_at,
    neutralised,
    oversized,
)
from evennia_ai.cards.report.parts import book_account, grant_uses, greeting_parts, text_parts
from evennia_ai.cards.report.report import Identity, ImportReport, TextPart
from evennia_ai.cards.suspicions import grouped
from evennia_ai.errors import ComponentValueError, FormatError
from evennia_ai.foreign.documents import Progress, silent
from evennia_ai.lorebook.book import Lorebook
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.prompt.components import NO_GRANTS, Grants
from evennia_ai.prompt.tokens import ESTIMATE, TokenCounter

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
    progress: Progress = silent,
) -> ImportReport:
    """The report of a card with these grants.

    `limit_tokens` is what a prompt has room for, None where that is not known; `rules` say how much
    of it lore may have, `post_history_depth` where instructions for after the history stand without
    their grant; `size_bytes` is the file's. FormatError: a text is too long for any prompt.
    """
    card = found.card
    parts = _parts(card, grants, counter, post_history_depth)
    book, problem = _book(card, grants, progress)
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
        ignored=(*ignored(found), *problem),
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


def _book(
    card: Card, grants: Grants, progress: Progress
) -> tuple[Lorebook | None, tuple[str, ...]]:
    """The card's book, and what is to be said where it cannot be read."""
    progress("lorebook", 0, 1)
    try:
        return character_book(card, grants=grants), ()
    except FormatError as error:
        return None, (f"its lorebook cannot be read and is left out: {error.message}",)
    finally:
        progress("lorebook", 1, 1)


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
