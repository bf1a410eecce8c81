"""Adjustments in the import report: parts of a card that are ignored, clamped or neutralised.

Each function yields sentences and does not change the card.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.book import Lorebook, missing_grants
from evennia_ai.engine.lorebook.decorators import (
    NO_ICONS,
    has_decorators,
    head_lines,
    parse_decorators,
)
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.prompt.components import MAX_DEPTH, Grants
from evennia_ai.engine.prompt.templates.unknown import unknown_macros
from evennia_ai.engine.prompt.templates.value_names import KNOWN_NAMES
from evennia_ai.formats.cards.card import DATA_FIELDS, Card
from evennia_ai.formats.cards.components import describe_changing_texts
from evennia_ai.formats.cards.loading import CardImport, embedded_path
from evennia_ai.formats.cards.report.parts import TOP_FROM, card_texts, note_role, pattern_keys
from evennia_ai.formats.lorebooks.books import book_of_card, entries_in_order, unwrap_book
from evennia_ai.formats.lorebooks.editing.lints import describe_changing_entry
from evennia_ai.formats.lorebooks.editing.without_effect import (
    entry_texts,
    list_idle_fields,
    list_unknown_macros,
    list_wanted_extensions,
)
from evennia_ai.formats.lorebooks.other_programs import read_risu_lines
from evennia_ai.formats.regex_scripts import MEMBER, counted_scripts, read_scripts, scripts_in

MOST_NAMES: Final = 8
# Members of `data` in a V3 card that this package reads, or only keeps for the export. The import
# report lists other members as unknown.
_KNOWN: Final = frozenset(
    {*DATA_FIELDS, "creation_date", "modification_date", "source", "spec", "spec_version", "data"}
)
_READ_EXTENSIONS: Final = frozenset({"depth_prompt", "world", MEMBER})
# Extensions that hold scripts of other programs, which this package never runs.
_SCRIPTED: Final = frozenset({"risuai", "tavern_helper", "TavernHelper_scripts"})
# The fields in which `{{original}}` is replaced with the game's own text.
_WITH_ORIGINAL: Final = frozenset({"system_prompt", "post_history_instructions"})


def list_ignored(found: CardImport) -> Iterator[str]:
    """Yield a sentence for each part of a card that is only kept for the export.

    Unknown macros get a sentence too.
    """
    card = found.card
    yield from list_card_extensions(card)
    yield from list_card_macros(card)
    book = card.character_book
    for sentence in (*list_unknown_macros(book), *list_idle_fields(book)):
        yield f"lore: {sentence}"
    if card.creator or card.character_version or card.tags:
        yield "creator, version and tags are shown to builders and never in a prompt"
    data = card.source if card.spec == "v1" else card.source.get("data", {})
    if unknown := sorted(set(data) - _KNOWN):
        yield f"unknown fields, kept for the export: {_join_names(unknown)}"
    others = sorted(set(card.extensions) - _READ_EXTENSIONS - _SCRIPTED)
    if others:
        yield f"unknown extensions, kept for the export: {_join_names(others)}"
    if scripts := sorted(set(card.extensions) & _SCRIPTED):
        names = _join_names(scripts)
        yield f"scripts in extensions ({names}) are kept for the export and never run"
    if remote := sum(_is_remote(stored.asset.uri) for stored in found.assets):
        yield f"{_count_things(remote, 'asset')} on other servers, never fetched"


def list_card_extensions(card: Card) -> tuple[str, ...]:
    """Return a sentence for each SillyTavern extension that the card or its book relies on."""
    own = (text for _, text in card_texts(card))
    return list_wanted_extensions((*own, *entry_texts(card.character_book)), card.extensions)


def list_card_macros(card: Card) -> Iterator[str]:
    """Yield a sentence for each unknown macro in the card's own texts."""
    for path, text in card_texts(card):
        known = KNOWN_NAMES | {"original"} if path in _WITH_ORIGINAL else KNOWN_NAMES
        for written in unknown_macros(text, known=known):
            yield f"{path}: {written} is an unknown macro and is sent as written"


def list_clamped(card: Card, book: Lorebook | None) -> Iterator[str]:
    """Yield a sentence for each kind of depth that is clamped, with the depth used instead."""
    note = card.extensions.get("depth_prompt")
    depth = note.get("depth") if isinstance(note, dict) else None
    if isinstance(depth, str) and re.fullmatch(r"-?[0-9]{1,9}", depth.strip()):
        depth = int(depth)
    if isinstance(depth, int) and not isinstance(depth, bool) and (how := _clamped_depth(depth)):
        yield f"extensions.depth_prompt: {how}"
    at_depths = (
        entry
        for entry in (book.entries if book is not None else ())
        if entry.depth is not None and entry.is_usable
    )
    deep = Counter(how for entry in at_depths if (how := _clamped_entry(entry)))
    for how, entries in deep.most_common():
        yield f"{_count_entries(entries)}: {how}"


def list_neutralised(card: Card, book: Lorebook | None, *, grants: Grants) -> Iterator[str]:
    """Yield a sentence for everything that the card asks for without having the grant for it."""
    if "system_prompt" not in grants and card.system_prompt.strip():
        yield "system_prompt is left out"
    if "after_history" not in grants and card.post_history_instructions.strip():
        yield "post_history_instructions are a user's message inside the history"
    if "roles" not in grants and (role := note_role(card)) not in ("", "user"):
        yield f"extensions.depth_prompt asks to speak as {role}: it is a user's message instead"
    scripts = read_scripts(scripts_in(card.extensions))
    if "regex" not in grants and scripts:
        yield f"{counted_scripts(scripts)}: kept and shown, but not run"
    yield from describe_changing_texts(card)
    if book is not None:
        yield from _list_neutralised_lore(book, grants)
        yield from _list_ignored_decorators(card)
    if templated := sum("{%" in text for _, text in card_texts(card)):
        number = _count_things(templated, "text")
        yield f"template logic in {number} is never run and stays as written"


def _list_neutralised_lore(book: Lorebook, grants: Grants) -> Iterator[str]:
    usable = [entry for entry in book.entries if entry.is_usable]
    lacking = Counter(grant for entry in usable for grant in missing_grants(entry, grants))
    if moved := lacking["positions"]:
        yield f"{_count_entries(moved)} asking for a place outside the history: at its top instead"
    if spoken := lacking["roles"]:
        yield f"{_count_entries(spoken)} asking to speak as system or assistant: as user instead"
    unsettled = Counter(filter(None, map(describe_changing_entry, usable)))
    for sentence, entries in unsettled.most_common():
        yield f"{_count_entries(entries)}: {sentence}"
    if "lore_budget" not in grants:
        if asked := book.token_budget:
            yield f"the book asks for a budget of {asked} tokens: the game's budget applies too"
        if ignoring := sum(entry.ignore_budget for entry in usable):
            yield f"{_count_entries(ignoring)} asking to ignore the budget: it applies nevertheless"
    if keys := sum(len(pattern_keys(entry)) for entry in usable):
        yield f"{_count_things(keys, 'regex key')}: searched with a limit of steps, or not at all"


def _list_ignored_decorators(card: Card) -> Iterator[str]:
    """Yield a sentence for each kind of ignored decorator line, with the number of its entries."""
    try:
        book = unwrap_book(book_of_card(card.character_book or {}))
    except FormatError:  # the notices on the book already report that it cannot be read
        return
    seen: Counter[str] = Counter()
    # caches notices by the leading lines of a content, because many entries begin alike
    known: dict[str, frozenset[str]] = {}
    for _, entry in entries_in_order(book["entries"]):
        content = entry.get("content") if isinstance(entry, dict) else None
        if isinstance(content, str) and has_decorators(content):
            content = read_risu_lines(content).content
            head = "".join(head_lines(content)[0])
            if head not in known:
                known[head] = frozenset(parse_decorators(head, absent=NO_ICONS).notices)
            seen.update(known[head])
    for notice, entries in sorted(seen.items(), key=lambda item: (-item[1], item[0]))[:MOST_NAMES]:
        yield f"lore: {notice} ({_count_things(entries, 'entry', 'entries')})"
    if (more := len(seen) - MOST_NAMES) > 0:
        yield f"lore: {more} more kinds of decorator lines are ignored"


def _clamped_entry(entry: LoreEntry) -> str:
    """Return words on how the depth of a lore entry is clamped, "" if it is not clamped."""
    asked = entry.depth if entry.asked_depth is None else entry.asked_depth
    if asked is None or (entry.from_oldest and asked >= 0):
        return ""
    if entry.from_oldest:
        return "a reverse depth below 0 means the top of the history"
    return _clamped_depth(asked, exact=False)


def _clamped_depth(depth: int, *, exact: bool = True) -> str:
    """Return words on how a depth is clamped, "" if it is not clamped.

    Without `exact`, all depths that are too large get the same description.
    """
    if depth >= TOP_FROM:
        named = f"depth {min(depth, MAX_DEPTH)}" if exact else f"a depth of {TOP_FROM} or more"
        return f"{named} is deeper than any history and means its top"
    return "a depth below 0 means the bottom of the history" if depth < 0 else ""


def _is_remote(uri: str) -> bool:
    is_here = embedded_path(uri) is not None or uri.lower().startswith(("data:", "ccdefault:"))
    return bool(uri.strip()) and not is_here


def _join_names(names: list[str]) -> str:
    shown = ", ".join(name[:40] for name in names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown


def _count_entries(number: int) -> str:
    return _count_things(number, "lore entry", "lore entries")


def _count_things(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
