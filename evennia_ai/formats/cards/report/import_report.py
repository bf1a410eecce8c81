"""An import report: what it says, as values, and those as plain JSON or as lines of plain text.

Nothing in the values is text of ours but short sentences; the lines are safe for a terminal and for
a game's client.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

from evennia_ai.engine.prompt.components import Grant, Grants, in_order
from evennia_ai.engine.text.columns import WIDTH, clipped, first_line, padded, visible, wrapped
from evennia_ai.formats.cards.suspicions import Suspicion


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a card is; nothing of it but its names ever reaches a prompt."""

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
    """A text of the card that goes into prompts: from which field, as what, and where it stands.

    `place` is where it stands with the grants given, "" where it is left out; `granted` where it
    would stand with `grant` too, both empty where nothing is missing.
    """

    field: str
    key: str
    id: int
    tokens: int
    place: str
    granted: str = ""
    grant: Grant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingPart:
    """A greeting: the character's first message, where an NPC is told to open with it."""

    index: int
    tokens: int
    group_only: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LorePlace:
    """A place that lore asks for: how many entries and tokens, and where they stand instead."""

    wanted: str
    entries: int
    tokens: int
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """An entry that stands out, and why; `text` is how it begins."""

    uid: str
    name: str
    text: str
    place: str
    tokens: int
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookAccount:
    """The card's lorebook in numbers.

    `usable` entries are neither disabled nor refused, and the other numbers are of those alone;
    `always` are the tokens of the entries that are active in every turn. `rows` are the
    entries that stand out, of `standing_out` ones.
    """

    label: str
    entries: int
    disabled: int
    refused: int
    usable: int
    tokens: int
    constants: int
    always: int
    by_depth: int
    pattern_keys: int
    asked_budget: int | None
    places: tuple[LorePlace, ...]
    rows: tuple[EntryRow, ...]
    standing_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUse:
    """A grant that the card has a use for: what it gives, and whether it is given."""

    grant: Grant
    gives: str
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What a card is, what becomes of everything in it, and what to look at before approving it.

    `clamped`, `neutralised` and `ignored` are a sentence each; `notices` are those of whoever read
    the file. `prompt_tokens` are those of the texts in every prompt, lore that is always on among
    them.
    """

    identity: Identity
    grants: Grants
    counter: str
    limit_tokens: int | None
    prompt_tokens: int
    parts: tuple[TextPart, ...]
    greetings: tuple[GreetingPart, ...]
    book: BookAccount | None
    ignored: tuple[str, ...]
    clamped: tuple[str, ...]
    neutralised: tuple[str, ...]
    uses: tuple[GrantUse, ...]
    suspicions: tuple[Suspicion, ...]
    notices: tuple[str, ...]


def report_object(report: ImportReport) -> dict[str, Any]:
    """The report as the object that `--json` prints; see docs/reference/cli.md."""
    values = asdict(report)
    warnings = [{**asdict(suspicion), "text": suspicion.text} for suspicion in report.suspicions]
    values.pop("suspicions")
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
_TEXT: Final = 25  # columns of a field's name
_NAME: Final = 100  # characters of who made the card, and of its version

Item = TypeVar("Item")


def report_lines(report: ImportReport) -> list[str]:
    """The report in lines of at most `WIDTH` columns; long lists are cut and say so."""
    sections = (
        _identity(report.identity),
        _texts(report),
        _greetings(report.greetings),
        _lore(report.book),
        titled_lines("Not as it was written (clamped)", report.clamped),
        titled_lines("Neutralised", report.neutralised),
        titled_lines("Ignored", report.ignored),
        titled_lines("Notices", report.notices),
        warning_lines(report.suspicions),
        grant_lines(report.uses),
    )
    return [line for section in sections for line in section]


def _identity(card: Identity) -> Iterator[str]:
    nickname = f" (nickname {card.nickname})" if card.nickname else ""
    yield clipped(visible(f"Card: {card.name}{nickname}"), WIDTH)
    spec = _SPECS.get(card.spec, card.spec)
    size = "" if card.size_bytes is None else f", {card.size_bytes} bytes"
    yield from item_lines(f"{spec} ({card.spec_version}) in {_CARRIERS[card.carrier]}{size}")
    if card.creator or card.version:
        by = f"by {card.creator[:_NAME]}" if card.creator else "by nobody named"
        yield from item_lines(f"{by}{', version ' + card.version[:_NAME] if card.version else ''}")
    if card.tags:
        yield from item_lines("tags: " + _few(card.tags))
    group = f" and {card.group_greetings} for groups" if card.group_greetings else ""
    yield from item_lines(f"greetings: {card.greetings}{group}; lore entries: {card.lore_entries}")
    if card.assets_held or card.assets_missing:
        yield f"  assets: {card.assets_held} in the file, {card.assets_missing} not"
    if paragraph := card.creator_notes.strip().split("\n\n")[0]:
        yield "Notes of the creator, for you and never in a prompt:"
        yield from cut_lines(
            wrapped(paragraph, WIDTH - 4), _NOTE_LINES, lambda line: [f"  | {line}"]
        )


def _texts(report: ImportReport) -> Iterator[str]:
    limit = report.limit_tokens
    share = f" of {limit} ({100 * report.prompt_tokens // limit} %)" if limit else ""
    yield f"In every prompt: {report.prompt_tokens} tokens{share}, counted by {report.counter}"
    for part in report.parts:
        yield from _text(part)


def _text(part: TextPart) -> Iterator[str]:
    place = part.place or "left out"
    head = f"  {padded(part.field, _TEXT)} {part.tokens:6} tokens  {place}"
    yield clipped(visible(head), WIDTH)
    if part.grant is not None:
        yield from item_lines(f"component {part.key}; with grant {part.grant}: {part.granted}", 6)
    else:
        yield from item_lines(f"component {part.key}", 6)


def _greetings(parts: Sequence[GreetingPart]) -> Iterator[str]:
    if not parts:
        return
    yield "Greetings, each the character's first message where an NPC opens with it:"
    yield from cut_lines(parts, _MOST_LINES, _greeting)


def _greeting(part: GreetingPart) -> Iterable[str]:
    group = " (groups)" if part.group_only else ""
    line = f"  {part.index:3} {part.tokens:6} tokens{group}  {first_line(part.text)}"
    return [clipped(line, WIDTH)]


def _lore(book: BookAccount | None) -> Iterator[str]:
    if book is None:
        return
    yield clipped(visible(f"Lorebook {book.label}: {_counts(book)}"), WIDTH)
    always = f"always on: {book.constants} with {book.always} tokens"
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
        yield f"  entries that stand out: {book.standing_out}"
    for row in book.rows:
        named = clipped(visible(f"{row.uid} {row.name or row.text}"), 24)
        yield from item_lines(f"#{padded(named, 24)} {row.tokens:5}  {'; '.join(row.why)}", 4)
    yield from more_lines(book.standing_out - len(book.rows), 4)


def _counts(book: BookAccount) -> str:
    told = [f"{book.entries} {'entry' if book.entries == 1 else 'entries'}"]
    told += [f"{book.disabled} disabled"] if book.disabled else []
    told += [f"{book.refused} never active"] if book.refused else []
    return ", ".join(told)


def warning_lines(suspicions: Sequence[Suspicion], *, kind: str = "card") -> Iterator[str]:
    """What to look at in a `kind` of file; that there is nothing is said as well."""
    if not suspicions:
        yield f"Warnings: none. That is no promise: read the {kind}."
        return
    yield "Warnings: look at these before you approve it"
    for suspicion in suspicions:
        yield from item_lines(f"{suspicion.text} ({suspicion.count})")
        for sighting in suspicion.sightings[:_MOST_PLACES]:
            quoted = f": {sighting.excerpt}" if sighting.excerpt else ""
            yield from item_lines(f"{sighting.where}{quoted}", 4)
        yield from more_lines(suspicion.count - _MOST_PLACES, 4)


def grant_lines(uses: Sequence[GrantUse]) -> Iterator[str]:
    """What each grant would give that there is a use for."""
    if not uses:
        yield "Grants: it has no use for any."
        return
    yield "Grants it has a use for; none is given unless you name it when you approve it:"
    for use in uses:
        given = " (given)" if use.given else ""
        yield from item_lines(f"{use.grant}{given}: {use.gives}")


def titled_lines(title: str, sentences: Sequence[str]) -> Iterator[str]:
    """Sentences under their title; without any there is none."""
    if sentences:
        yield f"{title}:"
        yield from cut_lines(sentences, _MOST_LINES, item_lines)


def cut_lines(
    items: Sequence[Item], most: int, lines_of: Callable[[Item], Iterable[str]]
) -> Iterator[str]:
    """The lines of the first items, and how many more there are."""
    for item in items[:most]:
        yield from lines_of(item)
    yield from more_lines(len(items) - most)


def more_lines(number: int, indent: int = 2) -> Iterator[str]:
    """How many more there are, where there are more."""
    if number > 0:
        yield f"{' ' * indent}and {number} more"


def item_lines(text: str, indent: int = 2) -> Iterator[str]:
    """A text under a title, made visible and wrapped."""
    first, *others = wrapped(text, WIDTH - indent - 2)
    yield f"{' ' * indent}{first}"
    yield from (f"{' ' * (indent + 2)}{line}" for line in others)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_LINES} more" if len(names) > _MOST_LINES else ""
    return ", ".join(name[:40] for name in names[:_MOST_LINES]) + more
