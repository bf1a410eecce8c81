"""The card's lorebook in numbers: where its entries stand, and which of them stand out."""

from collections.abc import Iterable, Iterator
from typing import Final

from evennia_ai.cards.progress import Progress
from evennia_ai.cards.report.texts import TOP_FROM, as_role, depth_words
from evennia_ai.cards.report.values import BookAccount, EntryRow, LorePlace
from evennia_ai.lorebook.books import Lorebook
from evennia_ai.lorebook.containment import is_moved, missing
from evennia_ai.lorebook.entries import LoreEntry, Position
from evennia_ai.lorebook.mentions import mention_in_words
from evennia_ai.lorebook.patterns import is_delimited
from evennia_ai.prompt.components import PLUGGABLE_IDS, Grants
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.text.columns import first_line

MOST_ROWS: Final = 12
_STEP: Final = 500  # entries between two words about the progress
_LARGE: Final = 400
_SHOWN: Final = 40
_PLACES: Final[dict[Position, str]] = {
    "before": f"before the character (ID {PLUGGABLE_IDS['world_info_before']})",
    "after": f"after the character (ID {PLUGGABLE_IDS['world_info_after']})",
    "note_top": "above the author's note",
    "note_bottom": "below the author's note",
    "examples_before": "before the examples",
    "examples_after": "after the examples",
    "outlet": "in an outlet",
}


def book_account(
    book: Lorebook, *, grants: Grants, counter: TokenCounter, progress: Progress
) -> BookAccount:
    """The book in numbers; one walk over its entries."""
    tokens = list(_counted(book, counter, progress))
    usable = [entry for entry in book.entries if is_usable(entry)]
    always = [entry for entry in usable if is_always_on(entry)]
    rows = [row for entry in usable if (row := _row(entry, tokens[entry.index], grants)).why]
    rows.sort(key=lambda row: (-len(row.why), -row.tokens))  # stable: then as in the file
    return BookAccount(
        label=book.label,
        entries=len(book.entries),
        disabled=sum(not entry.enabled for entry in book.entries),
        refused=sum(entry.enabled and entry.refused is not None for entry in book.entries),
        usable=len(usable),
        tokens=sum(tokens[entry.index] for entry in usable),
        constants=len(always),
        always=sum(tokens[entry.index] for entry in always),
        by_depth=sum(entry.position == "depth" for entry in usable),
        pattern_keys=sum(len(pattern_keys(entry)) for entry in usable),
        asked_budget=book.token_budget,
        places=tuple(_places(usable, tokens, grants)),
        rows=tuple(rows[:MOST_ROWS]),
        standing_out=len(rows),
    )


def is_usable(entry: LoreEntry) -> bool:
    """Whether the entry can ever be active, as far as itself goes."""
    return entry.enabled and entry.refused is None


def is_always_on(entry: LoreEntry) -> bool:
    """Whether the entry waits for no key."""
    return entry.constant or entry.gates.forced


def pattern_keys(entry: LoreEntry) -> list[str]:
    """The keys that are regular expressions, as written."""
    if entry.patterns == "none":
        return []
    lists = (entry.keys, entry.secondary_keys, *entry.gates.additional, entry.gates.excluded)
    written = [key.strip() for keys in lists for key in keys if key.strip()]
    return written if entry.patterns == "all" else [key for key in written if is_delimited(key)]


def speaks_as(entry: LoreEntry) -> bool:
    """Whether the entry itself asks to speak as somebody else; system is what files say anyway."""
    by_decorator = any(name == "role" for name, _ in entry.decorators)
    return entry.role == "assistant" or (by_decorator and entry.role != "user")


def _counted(book: Lorebook, counter: TokenCounter, progress: Progress) -> Iterator[int]:
    total = len(book.entries)
    for entry in book.entries:
        if entry.index % _STEP == 0:
            progress("lore entries counted", entry.index, total)
        yield counter.count(entry.template.source)
    progress("lore entries counted", total, total)


def _places(entries: Iterable[LoreEntry], tokens: list[int], grants: Grants) -> Iterator[LorePlace]:
    """The places that are asked for, those of most tokens first."""
    found: dict[tuple[str, str], list[int]] = {}
    for entry in entries:
        found.setdefault((_wanted(entry), _stands(entry, grants)), []).append(tokens[entry.index])
    made = [
        LorePlace(wanted=wanted, entries=len(counts), tokens=sum(counts), place=place)
        for (wanted, place), counts in found.items()
    ]
    yield from sorted(made, key=lambda one: (-one.tokens, one.wanted))


def _wanted(entry: LoreEntry) -> str:
    """Where an entry asks to stand."""
    return f"{_position(entry)}, {as_role(entry.role)}"


def _stands(entry: LoreEntry, grants: Grants) -> str:
    """Where an entry stands; depths are told as they count."""
    lacks = missing(entry, grants)
    place = "top of the history" if is_moved(entry.position, grants) else _position(entry)
    return f"{place}, {as_role('user' if 'roles' in lacks else entry.role)}"


def _position(entry: LoreEntry) -> str:
    if entry.position == "depth":
        depth = entry.depth or 0
        if entry.from_oldest:
            return f"depth {depth} from the oldest message"
        return "top of the history, by a huge depth" if depth >= TOP_FROM else depth_words(depth)
    if entry.anchor is not None:
        return f"{entry.anchor.side} the component {entry.anchor.component}"
    if entry.mention is not None:
        return mention_in_words(entry.mention)
    return _PLACES.get(entry.position, entry.position)


def _row(entry: LoreEntry, tokens: int, grants: Grants) -> EntryRow:
    return EntryRow(
        uid=entry.uid,
        name=entry.name,
        text=first_line(entry.template.source)[:_SHOWN],
        place=_stands(entry, grants),
        tokens=tokens,
        why=tuple(_why(entry, tokens)),
    )


def _why(entry: LoreEntry, tokens: int) -> Iterator[str]:
    """What makes an entry worth a look."""
    if entry.gates.forced:
        yield "active whatever its keys say"
    elif entry.constant:
        yield "in every prompt"
    if entry.ignore_budget:
        yield "asks to ignore the budget"
    if entry.position == "depth" and (entry.depth or 0) <= 0 and not entry.from_oldest:
        yield "stands last"
    if speaks_as(entry):
        yield f"speaks as {entry.role}"
    if pattern_keys(entry):
        yield "regex keys"
    if tokens > _LARGE:
        yield "long"
