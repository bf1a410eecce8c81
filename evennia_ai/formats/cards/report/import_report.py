"""The import report of a card as dataclasses, and its rendering as JSON or as lines of text.

The lines are safe to print in a terminal and in a game client, whatever the card's texts contain.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

from evennia_ai.engine.prompt.components import Grant, Grants, in_order
from evennia_ai.engine.text.columns import (
    WIDTH,
    clip_text,
    escape_controls,
    first_line,
    pad_text,
    wrap_text,
)
from evennia_ai.formats.cards.content_warnings import ContentWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The section of the import report with facts about a card, such as its name and creator."""

    name: str
    nickname: str
    spec: str
    spec_version: str
    carrier: str
    creator: str
    version: str
    tags: tuple[str, ...]
    size_bytes: int | None
    greetings: int
    group_greetings: int
    assets_held: int
    assets_missing: int
    lore_entries: int
    creator_notes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """A row of the import report: a text of the card that becomes a prompt component."""

    field: str
    key: str
    id: int
    tokens: int
    place: str
    """The text's place in the prompt with the present grants, "" if the text is left out."""
    granted: str = ""
    """The place that the text would get with the missing `grant`; "" if none is missing."""
    grant: Grant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingPart:
    """A row of the import report: a greeting of the card.

    A builder may choose it as the NPC's first message.
    """

    index: int
    tokens: int
    group_only: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LorePlace:
    """A row of the import report: the lore entries with the same requested and actual place.

    `wanted` is the requested place and `place` the actual one. `entries` and `tokens` are totals.
    """

    wanted: str
    entries: int
    tokens: int
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """A row of the import report: a lore entry that a builder should check.

    `text` is the beginning of the entry's content, and `why` has the reasons.
    """

    uid: str
    name: str
    text: str
    place: str
    tokens: int
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookAccount:
    """The section of the import report that describes the card's lorebook in numbers.

    The numbers include only usable entries unless stated otherwise.
    """

    label: str
    entries: int
    """The number of all entries, usable or not."""
    disabled: int
    refused: int
    usable: int
    """The number of entries that are neither disabled nor refused."""
    tokens: int
    constants: int
    """The number of entries that are active in every turn."""
    always: int
    """The total tokens of the entries that are active in every turn."""
    by_depth: int
    pattern_keys: int
    asked_budget: int | None
    places: tuple[LorePlace, ...]
    rows: tuple[EntryRow, ...]
    """The first lore entries that a builder should check."""
    standing_out: int
    """The number of entries that a builder should check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUse:
    """A grant that would change something for a card or preset, with its effect.

    `given` is True if the report assumes this grant.
    """

    grant: Grant
    gives: str
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The import report: a card, its effects on prompts, and suspicious content in it."""

    identity: Identity
    grants: Grants
    counter: str
    """The name of the token counter with which the tokens are counted."""
    limit_tokens: int | None
    prompt_tokens: int
    """The total tokens of the card's texts that are in every prompt, with always active lore."""
    parts: tuple[TextPart, ...]
    greetings: tuple[GreetingPart, ...]
    book: BookAccount | None
    ignored: tuple[str, ...]
    clamped: tuple[str, ...]
    neutralised: tuple[str, ...]
    uses: tuple[GrantUse, ...]
    warnings: tuple[ContentWarning, ...]
    notices: tuple[str, ...]
    """Notices about reading the card's file and its lorebook."""


def report_object(report: ImportReport) -> dict[str, Any]:
    """Return a card's import report as the JSON object that `--json` prints."""
    values = asdict(report)
    warnings = [{**asdict(warning), "text": warning.text} for warning in report.warnings]

    return {**values, "grants": list(in_order(report.grants)), "warnings": warnings}


_CARRIERS: Final = {
    "json": "JSON",
    "png": "a PNG picture",
    "apng": "an animated PNG picture",
    "charx": "a CHARX archive",
}
_SPECS: Final = {
    "chara_card_v3": "Character Card V3",
    "chara_card_v2": "Character Card V2",
    "v1": "Character Card V1",
}
_MOST_LINES: Final = 12
_MOST_PLACES: Final = 5
_NOTE_LINES: Final = 6
_FIELD_COLUMNS: Final = 25
# the number of characters that the report shows of the creator's name and of the version
_NAME: Final = 100

Item = TypeVar("Item")


def report_lines(report: ImportReport) -> list[str]:
    """Return a card's import report as lines; lists that are cut end with "and N more"."""
    sections = (
        _identity_lines(report.identity),
        _text_lines(report),
        _greeting_lines(report.greetings),
        _lore_lines(report.book),
        titled_lines("Clamped depths", report.clamped),
        titled_lines("Neutralised", report.neutralised),
        titled_lines("Ignored", report.ignored),
        titled_lines("Notices", report.notices),
        warning_lines(report.warnings),
        grant_lines(report.uses),
    )
    return [line for section in sections for line in section]


def _identity_lines(card: Identity) -> Iterator[str]:
    nickname = f" (nickname {card.nickname})" if card.nickname else ""
    yield clip_text(escape_controls(f"Card: {card.name}{nickname}"), WIDTH)
    spec = _SPECS.get(card.spec, card.spec)
    size = "" if card.size_bytes is None else f", {card.size_bytes} bytes"
    yield from item_lines(f"{spec} ({card.spec_version}) in {_CARRIERS[card.carrier]}{size}")
    if card.creator or card.version:
        by = f"by {card.creator[:_NAME]}" if card.creator else "creator not named"
        yield from item_lines(f"{by}{', version ' + card.version[:_NAME] if card.version else ''}")
    if card.tags:
        more = f" and {len(card.tags) - _MOST_LINES} more" if len(card.tags) > _MOST_LINES else ""
        tags = ", ".join(tag[:40] for tag in card.tags[:_MOST_LINES])
        yield from item_lines(f"tags: {tags}{more}")
    group = f" and {card.group_greetings} for groups" if card.group_greetings else ""
    yield from item_lines(f"greetings: {card.greetings}{group}; lore entries: {card.lore_entries}")
    if card.assets_held or card.assets_missing:
        yield f"  assets: {card.assets_held} in the file, {card.assets_missing} not"
    if paragraph := card.creator_notes.strip().split("\n\n")[0]:
        yield "Notes of the creator, shown to you and never in a prompt:"
        yield from cut_lines(
            wrap_text(paragraph, WIDTH - 4), _NOTE_LINES, lambda line: [f"  | {line}"]
        )


def _text_lines(report: ImportReport) -> Iterator[str]:
    limit = report.limit_tokens
    share = f" of {limit} ({100 * report.prompt_tokens // limit} %)" if limit else ""
    yield f"In every prompt: {report.prompt_tokens} tokens{share}, counted by {report.counter}"
    for part in report.parts:
        place = part.place or "left out"
        head = f"  {pad_text(part.field, _FIELD_COLUMNS)} {part.tokens:6} tokens  {place}"
        yield clip_text(escape_controls(head), WIDTH)
        granted = f"; with grant {part.grant}: {part.granted}" if part.grant is not None else ""
        yield from item_lines(f"component {part.key}{granted}", 6)


def _greeting_lines(parts: Sequence[GreetingPart]) -> Iterator[str]:
    if not parts:
        return
    yield "Greetings, each the character's first message where an NPC opens with it:"
    for part in parts[:_MOST_LINES]:
        group = " (groups)" if part.group_only else ""
        line = f"  {part.index:3} {part.tokens:6} tokens{group}  {first_line(part.text)}"
        yield clip_text(line, WIDTH)
    yield from more_lines(len(parts) - _MOST_LINES)


def _lore_lines(book: BookAccount | None) -> Iterator[str]:
    if book is None:
        return
    counts = [f"{book.entries} {'entry' if book.entries == 1 else 'entries'}"]
    counts += [f"{book.disabled} disabled"] if book.disabled else []
    counts += [f"{book.refused} never active"] if book.refused else []
    yield clip_text(escape_controls(f"Lorebook {book.label}: {', '.join(counts)}"), WIDTH)
    always = f"in every prompt: {book.constants} with {book.always} tokens"
    yield f"  {book.tokens} tokens in all; {always}; by depth: {book.by_depth}"
    if book.pattern_keys or book.asked_budget is not None:
        asked = "none of its own" if book.asked_budget is None else str(book.asked_budget)
        yield f"  regex keys: {book.pattern_keys}; budget it asks for: {asked}"
    for place in book.places[:_MOST_LINES]:
        stays = place.wanted == place.place
        where = place.place if stays else f"{place.wanted} -> {place.place}"
        yield from item_lines(f"{place.entries:5} with {place.tokens:6} tokens: {where}")
    yield from more_lines(len(book.places) - _MOST_LINES)
    if book.rows:
        yield f"  entries to check: {book.standing_out}"
    for row in book.rows:
        named = clip_text(escape_controls(f"{row.uid} {row.name or row.text}"), 24)
        yield from item_lines(f"#{pad_text(named, 24)} {row.tokens:5}  {'; '.join(row.why)}", 4)
    yield from more_lines(book.standing_out - len(book.rows), 4)


def warning_lines(warnings: Sequence[ContentWarning], *, kind: str = "card") -> Iterator[str]:
    """Yield the lines for warnings about suspicious content, or a line that there are none.

    `kind` is the word for the file, such as "card".
    """
    if not warnings:
        yield f"Warnings: none. The search does not find everything: read the {kind}."
        return
    yield "Warnings: look at these before you approve it"
    for warning in warnings:
        yield from item_lines(f"{warning.text} ({warning.count})")
        for place in warning.places[:_MOST_PLACES]:
            quoted = f": {place.excerpt}" if place.excerpt else ""
            yield from item_lines(f"{place.where}{quoted}", 4)
        yield from more_lines(warning.count - _MOST_PLACES, 4)


def grant_lines(uses: Sequence[GrantUse]) -> Iterator[str]:
    """Yield the lines on the grants that would change something, with their effects."""
    if not uses:
        yield "Grants: none would change anything."
        return
    yield "Useful grants; you give only those that you name when you approve it:"
    for use in uses:
        given = " (given)" if use.given else ""
        yield from item_lines(f"{use.grant}{given}: {use.gives}")


def titled_lines(title: str, sentences: Sequence[str]) -> Iterator[str]:
    """Yield the sentences as a list below a title; yield nothing if there are none."""
    if sentences:
        yield f"{title}:"
        yield from cut_lines(sentences, _MOST_LINES, item_lines)


def cut_lines(
    items: Sequence[Item], most: int, lines_of: Callable[[Item], Iterable[str]]
) -> Iterator[str]:
    """Yield the lines of the first `most` items, and a line with the number of omitted items."""
    for item in items[:most]:
        yield from lines_of(item)
    yield from more_lines(len(items) - most)


def more_lines(number: int, indent: int = 2) -> Iterator[str]:
    """Yield the line "and N more" if N is positive."""
    if number > 0:
        yield f"{' ' * indent}and {number} more"


def item_lines(text: str, indent: int = 2) -> Iterator[str]:
    """Yield a text as indented, wrapped lines, with control characters made visible."""
    first, *others = wrap_text(text, WIDTH - indent - 2)
    yield f"{' ' * indent}{first}"
    yield from (f"{' ' * (indent + 2)}{line}" for line in others)
