"""A card that was read -> the report of what becomes of everything in it. Nothing is stored.

Here are the findings too: what is ignored, clamped or neutralised of a card, what to look at twice.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from evennia_ai.cards.card import DATA_FIELDS, Card, greetings, notes_in
from evennia_ai.cards.components import DEFAULT_DEPTH, character_book
from evennia_ai.cards.loading import DEFAULT_ADDRESS, CardImport, path_beside
from evennia_ai.cards.report.import_report import BookAccount, Identity, ImportReport, TextPart
from evennia_ai.cards.report.parts import (
    MOST_GREETINGS,
    TOP_FROM,
    book_account,
    card_texts,
    grant_uses,
    greeting_parts,
    note_role,
    pattern_keys,
    speaks_as,
    text_parts,
)
from evennia_ai.cards.report.unknown import unknown_in, unknown_in_lore
from evennia_ai.cards.suspicions import Raised, Sighting, grouped, in_name, in_text
from evennia_ai.errors import ComponentValueError, FormatError
from evennia_ai.foreign.documents import Progress, silent
from evennia_ai.lorebook.activation.lore_budget import budget_of
from evennia_ai.lorebook.book import Lorebook, missing
from evennia_ai.lorebook.decorators import head_lines, read_decorators
from evennia_ai.lorebook.editing.without_effect import fields_without_effect
from evennia_ai.lorebook.entry import LoreEntry
from evennia_ai.lorebook.formats.books import in_order, unwrapped
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scan.regex.pattern import Refused, read_pattern
from evennia_ai.prompt.components import MAX_DEPTH, NO_GRANTS, Grants
from evennia_ai.prompt.tokens import ESTIMATE, TokenCounter

MOST_NAMES: Final = 8
# Members of a V3 card's data that are read, or known and kept.
_KNOWN: Final = frozenset(
    {*DATA_FIELDS, "creation_date", "modification_date", "source", "spec", "spec_version", "data"}
)
_READ_EXTENSIONS: Final = frozenset({"depth_prompt"})
# Extensions that hold scripts of other programs.
_SCRIPTED: Final = frozenset({"risuai", "regex_scripts", "tavern_helper", "TavernHelper_scripts"})


def ignored(found: CardImport) -> Iterator[str]:
    """What is kept for the export and does nothing else."""
    card = found.card
    if card.creator or card.character_version or card.tags:
        yield "creator, version and tags are shown to builders and never in a prompt"
    if unknown := sorted(set(_data(card)) - _KNOWN):
        yield f"unknown fields, kept for the export: {_named(unknown)}"
    others = sorted(set(card.extensions) - _READ_EXTENSIONS - _SCRIPTED)
    if others:
        yield f"extensions that nothing here reads, kept for the export: {_named(others)}"
    if scripts := sorted(set(card.extensions) & _SCRIPTED):
        yield f"scripts in extensions ({_named(scripts)}) are kept for the export and never run"
    yield from unknown_in(card)
    yield from unknown_in_lore(card)
    yield from (f"lore: {told}" for told in fields_without_effect(card.character_book))
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
        yield "post_history_instructions end the history as a user's and do not follow it"
    if "roles" not in grants and (role := note_role(card)) not in ("", "user"):
        yield f"extensions.depth_prompt asks to speak as {role}: it stands there as a user's"
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
    if "lore_budget" not in grants:
        if asked := book.token_budget:
            yield f"the book asks for a budget of {asked} tokens: the game's own counts too"
        if ignoring := sum(entry.ignore_budget for entry in usable):
            yield f"{_entries(ignoring)} asking to ignore the budget: it counts all the same"
    if "regex" not in grants and (keys := sum(len(pattern_keys(entry)) for entry in usable)):
        yield f"{_count(keys, 'regex key')}: run under a time limit, or not at all"


def _decorators(card: Card) -> Iterator[str]:
    """Lines at the head of entries that count for nothing, each told once."""
    book = unwrapped(card.character_book)
    told: Counter[str] = Counter()
    known: dict[str, frozenset[str]] = {}  # many entries begin with the same lines
    for _, entry in in_order(book["entries"]):
        content = entry.get("content") if isinstance(entry, dict) else None
        if isinstance(content, str) and content.lstrip().startswith("@@"):
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
