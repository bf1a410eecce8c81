"""What becomes of a card's fields that are not taken as they are: ignored, clamped, neutralised.

Each finding is a sentence for the import report; nothing of the card is changed by it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.book import Lorebook, missing
from evennia_ai.engine.lorebook.decorators import has_decorators, head_lines, read_decorators
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.prompt.components import MAX_DEPTH, Grants
from evennia_ai.formats.cards.card import DATA_FIELDS, Card
from evennia_ai.formats.cards.components import unsettled_texts
from evennia_ai.formats.cards.loading import CardImport, path_beside
from evennia_ai.formats.cards.report.parts import TOP_FROM, card_texts, note_role, pattern_keys
from evennia_ai.formats.cards.report.unknown import extensions_of, unknown_in
from evennia_ai.formats.lorebooks.books import book_of_card, in_order, unwrapped
from evennia_ai.formats.lorebooks.editing.lints import unsettled_entry_sentence
from evennia_ai.formats.lorebooks.editing.without_effect import (
    fields_without_effect,
    unknown_in_entries,
)
from evennia_ai.formats.lorebooks.other_programs import read_risu_lines

MOST_NAMES: Final = 8
# Members of a V3 card's data that are read, or known and kept.
_KNOWN: Final = frozenset(
    {*DATA_FIELDS, "creation_date", "modification_date", "source", "spec", "spec_version", "data"}
)
_READ_EXTENSIONS: Final = frozenset({"depth_prompt", "world"})
# Extensions that hold scripts of other programs.
_SCRIPTED: Final = frozenset({"risuai", "regex_scripts", "tavern_helper", "TavernHelper_scripts"})


def ignored(found: CardImport) -> Iterator[str]:
    """What is kept for the export and does nothing else, and macros that stay as they are."""
    card = found.card
    yield from extensions_of(card)
    yield from unknown_in(card)
    of_lore = (unknown_in_entries(card.character_book), fields_without_effect(card.character_book))
    yield from (f"lore: {told}" for sentences in of_lore for told in sentences)
    if card.creator or card.character_version or card.tags:
        yield "creator, version and tags are shown to builders and never in a prompt"
    if unknown := sorted(set(_data(card)) - _KNOWN):
        yield f"unknown fields, kept for the export: {_named(unknown)}"
    others = sorted(set(card.extensions) - _READ_EXTENSIONS - _SCRIPTED)
    if others:
        yield f"extensions that nothing here reads, kept for the export: {_named(others)}"
    if scripts := sorted(set(card.extensions) & _SCRIPTED):
        yield f"scripts in extensions ({_named(scripts)}) are kept for the export and never run"
    if remote := sum(_is_remote(stored.asset.uri) for stored in found.assets):
        yield f"{_count(remote, 'asset')} at remote addresses, never fetched"


def clamped(card: Card, book: Lorebook | None) -> Iterator[str]:
    """Numbers that are cut to what there is."""
    note = card.extensions.get("depth_prompt")
    depth = note.get("depth") if isinstance(note, dict) else None
    if isinstance(depth, str) and re.fullmatch(r"-?[0-9]{1,9}", depth.strip()):
        depth = int(depth)
    if isinstance(depth, int) and not isinstance(depth, bool) and (told := _depth_clamped(depth)):
        yield f"extensions.depth_prompt: {told}"
    deep = Counter(told for entry in _at_depths(book) if (told := _entry_clamped(entry)))
    for told, entries in deep.most_common():
        yield f"{_count(entries, 'lore entry', 'lore entries')}: {told}"


def neutralised(card: Card, book: Lorebook | None, *, grants: Grants) -> Iterator[str]:
    """What the card asks for and does not get."""
    if "system_prompt" not in grants and card.system_prompt.strip():
        yield "system_prompt is left out"
    if "after_history" not in grants and card.post_history_instructions.strip():
        yield "post_history_instructions stand inside the history as a user's"
    if "roles" not in grants and (role := note_role(card)) not in ("", "user"):
        yield f"extensions.depth_prompt asks to speak as {role}: it stands there as a user's"
    yield from unsettled_texts(card)
    if book is not None:
        yield from _of_lore(book, grants)
        yield from _decorators(card)
    if templated := sum("{%" in text for _, text in card_texts(card)):
        yield f"template logic in {_count(templated, 'text')} is never run: it stays as written"


def _of_lore(book: Lorebook, grants: Grants) -> Iterator[str]:
    usable = [entry for entry in book.entries if entry.is_usable]
    lacking = Counter(grant for entry in usable for grant in missing(entry, grants))
    if moved := lacking["positions"]:
        yield f"{_entries(moved)} outside the history: at its top instead"
    if spoken := lacking["roles"]:
        yield f"{_entries(spoken)} of the role system or assistant: a user's instead"
    unsettled = Counter(filter(None, map(unsettled_entry_sentence, usable)))
    for sentence, entries in unsettled.most_common():
        yield f"{_entries(entries)}: {sentence}"
    if "lore_budget" not in grants:
        if asked := book.token_budget:
            yield f"the book asks for a budget of {asked} tokens: the game's own counts too"
        if ignoring := sum(entry.ignore_budget for entry in usable):
            yield f"{_entries(ignoring)} asking to ignore the budget: it counts all the same"
    if "regex" not in grants and (keys := sum(len(pattern_keys(entry)) for entry in usable)):
        yield f"{_count(keys, 'regex key')}: run under a time limit, or not at all"


def _decorators(card: Card) -> Iterator[str]:
    """Lines at the head of entries that count for nothing, each told once."""
    try:
        book = unwrapped(book_of_card(card.character_book or {}))
    except FormatError:  # the book's own notice tells it
        return
    told: Counter[str] = Counter()
    known: dict[str, frozenset[str]] = {}  # many entries begin with the same lines
    for _, entry in in_order(book["entries"]):
        content = entry.get("content") if isinstance(entry, dict) else None
        if isinstance(content, str) and has_decorators(content):
            content = read_risu_lines(content).content
            head = "".join(head_lines(content)[0])
            if head not in known:
                known[head] = frozenset(read_decorators(head).notices)
            told.update(known[head])
    for notice, entries in sorted(told.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]:
        yield f"lore: {notice} ({_count(entries, 'entry', 'entries')})"
    if (more := len(told) - MOST_NAMES) > 0:
        yield f"lore: {more} more decorators that are ignored"


def _at_depths(book: Lorebook | None) -> Iterator[LoreEntry]:
    for entry in book.entries if book is not None else ():
        if entry.depth is not None and entry.is_usable:
            yield entry


def _entry_clamped(entry: LoreEntry) -> str:
    """What becomes of an entry's depth that no history has, "" for others."""
    asked = entry.depth if entry.asked_depth is None else entry.asked_depth
    if asked is None or (entry.from_oldest and asked >= 0):
        return ""
    if entry.from_oldest:
        return "a reverse depth below 0 is the top of the history"
    return _depth_clamped(asked, exact=False)


def _depth_clamped(depth: int, *, exact: bool = True) -> str:
    """What becomes of a depth that no history has, "" for others."""
    if depth >= TOP_FROM:
        named = f"depth {min(depth, MAX_DEPTH)}" if exact else f"a depth of {TOP_FROM} or more"
        return f"{named} is deeper than a history is, so it is the top of it"
    return "a depth below 0 is the bottom of the history" if depth < 0 else ""


def _data(card: Card) -> dict[str, Any]:
    data = card.source if card.spec == "v1" else card.source.get("data", {})
    return dict(data)


def _is_remote(uri: str) -> bool:
    is_here = path_beside(uri) is not None or uri.lower().startswith(("data:", "ccdefault:"))
    return bool(uri.strip()) and not is_here


def _named(names: list[str]) -> str:
    shown = ", ".join(name[:40] for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _entries(number: int) -> str:
    return _count(number, "lore entry", "lore entries")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
