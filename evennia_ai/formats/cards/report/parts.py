"""Parts of the import report: the card's texts, its lorebook in numbers, and useful grants."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.engine.lorebook.book import Lorebook, is_moved, mention_in_words, missing_grants
from evennia_ai.engine.lorebook.entry import IN_HISTORY, LoreEntry, Position
from evennia_ai.engine.lorebook.scan.regex.pattern import has_slashes
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    ALLOWS,
    NO_GRANTS,
    PLUGGABLE_IDS,
    Grant,
    Grants,
    PromptComponent,
)
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.text.columns import first_line
from evennia_ai.formats.cards.card import Card, greetings
from evennia_ai.formats.cards.components import DEFAULT_DEPTH, FIELDS, card_components
from evennia_ai.formats.cards.report.import_report import (
    BookAccount,
    EntryRow,
    GrantUse,
    GreetingPart,
    LorePlace,
    TextPart,
)
from evennia_ai.formats.regex_scripts import counted_scripts, read_scripts, scripts_in

# Import reports call this depth and all deeper ones the top of the history, because few histories
# are longer.
TOP_FROM: Final = 1_000
MOST_GREETINGS: Final = 1_000
_TEXTS: Final = (
    *("name", "nickname", "description", "personality", "scenario", "first_mes", "mes_example"),
    *("system_prompt", "post_history_instructions"),
)
_POST_HISTORY: Final = "post_history_instructions"
# Maps keys of components to the card's field, and to the grant that the place of the field depends
# on.
_FIELDS: Final[Mapping[str, tuple[str, Grant]]] = {
    "card_system_prompt": ("system_prompt", "system_prompt"),
    **{key: (field, "fields") for key, field in FIELDS.items()},
    _POST_HISTORY: (_POST_HISTORY, "after_history"),
    "card_depth_prompt": ("extensions.depth_prompt", "roles"),
}


def text_parts(
    card: Card, *, grants: Grants, counter: TokenCounter, post_history_depth: int = DEFAULT_DEPTH
) -> tuple[TextPart, ...]:
    """Return a row of the import report for each text of a card that is not empty."""
    granted_now = card_components(card, grants=grants, post_history_depth=post_history_depth)
    now = {one.key: one for one in granted_now}
    made = []
    for full in card_components(card, grants=ALL_GRANTS):
        field, grant = _FIELDS[full.key]
        place = place_of(now[full.key]) if full.key in now else ""
        granted = place_of(full)
        lacks = place != granted
        made.append(
            TextPart(
                field=field,
                key=full.key,
                id=now.get(full.key, full).id,
                tokens=counter.count(full.content),
                place=place,
                granted=granted if lacks else "",
                grant=grant if lacks else None,
            )
        )
    return tuple(made)


def greeting_parts(card: Card, *, counter: TokenCounter) -> tuple[GreetingPart, ...]:
    """Return a row of the import report for each greeting that is not empty.

    Only the first `MOST_GREETINGS` greetings are included.
    """
    first_for_groups = len(greetings(card))
    return tuple(
        GreetingPart(
            index=index,
            tokens=counter.count(text),
            group_only=index >= first_for_groups,
            text=text,
        )
        for index, text in enumerate(greetings(card, group=True)[:MOST_GREETINGS])
        if text.strip()
    )


def card_texts(card: Card) -> Iterator[tuple[str, str]]:
    """Yield the path and text of every card field that can reach a prompt, without lore.

    Only the first `MOST_GREETINGS` of each list of greetings are included.
    """
    yield from ((field, getattr(card, field)) for field in _TEXTS)
    for field in ("alternate_greetings", "group_only_greetings"):
        for number, text in enumerate(getattr(card, field)[:MOST_GREETINGS]):
            yield f"{field}[{number}]", text
    note = card.extensions.get("depth_prompt")
    if isinstance(note, dict) and isinstance(note.get("prompt"), str):
        yield "extensions.depth_prompt.prompt", note["prompt"]


def note_role(card: Card) -> str:
    """Return the role that a card requests for its depth prompt, "" without a depth prompt."""
    made = card_components(card, grants=ALL_GRANTS)
    return next((one.role for one in made if one.key == "card_depth_prompt"), "")


def place_of(component: PromptComponent) -> str:
    """Return words for the place of a component in the prompt, such as "ID 1010, role user"."""
    role = _role_words(component.role)
    if component.placement != "history":
        return f"ID {component.id}, {role}"
    return f"{_depth_words(component.injection_depth)}, {role}"


def _role_words(role: str) -> str:
    return f"role {role}"


def _depth_words(depth: int) -> str:
    """Return words for a depth, such as "depth 4 in the history"."""
    if depth >= TOP_FROM:
        return "top of the history"
    return "bottom of the history" if depth <= 0 else f"depth {depth} in the history"


MOST_ROWS: Final = 12
_STEP: Final = 500  # the number of lore entries after which progress is reported
_LARGE: Final = 400  # a lore entry with more tokens is reported as long
_SHOWN: Final = 40  # the number of characters of a lore entry's text that the report shows
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
    """Return the section of the import report on a lorebook.

    It counts the entries by state and place, and lists those that a builder should check.
    """
    tokens = list(_count_entries(book, counter, progress))
    usable = [entry for entry in book.entries if entry.is_usable]
    always = [entry for entry in usable if entry.constant or entry.gates.forced]
    rows = [row for entry in usable if (row := _row(entry, tokens[entry.index], grants)).why]
    # the sort is stable, so entries with the same rank stay in the order of the file
    rows.sort(key=lambda row: (-len(row.why), -row.tokens))
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


def pattern_keys(entry: LoreEntry) -> list[str]:
    """Return the keys of a lore entry that are regular expressions, as written."""
    if entry.patterns == "none":
        return []
    written = [key.strip() for keys in entry.key_lists for key in keys if key.strip()]
    return written if entry.patterns == "all" else [key for key in written if has_slashes(key)]


def speaks_as(entry: LoreEntry) -> bool:
    """True if a lore entry requests the role assistant, or by a decorator the role system."""
    by_decorator = any(name == "role" for name, _ in entry.decorators)
    return entry.role == "assistant" or (by_decorator and entry.role != "user")


def _count_entries(book: Lorebook, counter: TokenCounter, progress: Progress) -> Iterator[int]:
    total = len(book.entries)
    for entry in book.entries:
        if entry.index % _STEP == 0:
            progress("lore entries counted", entry.index, total)
        yield counter.count(entry.template.source)
    progress("lore entries counted", total, total)


def _places(entries: Iterable[LoreEntry], tokens: list[int], grants: Grants) -> Iterator[LorePlace]:
    """Yield a row of the import report for each pair of a requested and an actual place.

    Places with the most tokens come first.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for entry in entries:
        wanted = f"{_position_words(entry)}, {_role_words(entry.role)}"
        found.setdefault((wanted, _entry_place(entry, grants)), []).append(tokens[entry.index])
    made = [
        LorePlace(wanted=wanted, entries=len(counts), tokens=sum(counts), place=place)
        for (wanted, place), counts in found.items()
    ]
    yield from sorted(made, key=lambda one: (-one.tokens, one.wanted))


def _entry_place(entry: LoreEntry, grants: Grants) -> str:
    """Return words for the place that a lore entry gets in the prompt with these grants."""
    lacks = missing_grants(entry, grants)
    place = "top of the history" if is_moved(entry.position, grants) else _position_words(entry)
    return f"{place}, {_role_words('user' if 'roles' in lacks else entry.role)}"


def _position_words(entry: LoreEntry) -> str:
    if entry.position == "depth":
        depth = entry.depth or 0
        if entry.from_oldest:
            return f"depth {depth} from the oldest message"
        return (
            "top of the history (its depth is huge)" if depth >= TOP_FROM else _depth_words(depth)
        )
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
        place=_entry_place(entry, grants),
        tokens=tokens,
        why=tuple(_reasons_to_look(entry, tokens)),
    )


def _reasons_to_look(entry: LoreEntry, tokens: int) -> Iterator[str]:
    if entry.gates.forced:
        yield "active without its keys"
    elif entry.constant:
        yield "in every prompt"
    if entry.ignore_budget:
        yield "asks to ignore the budget"
    if entry.position == "depth" and (entry.depth or 0) <= 0 and not entry.from_oldest:
        yield "placed after the newest message"
    if speaks_as(entry):
        yield f"role {entry.role}"
    if pattern_keys(entry):
        yield "regex keys"
    if tokens > _LARGE:
        yield "long"


def grant_uses(card: Card, book: Lorebook | None, *, grants: Grants) -> tuple[GrantUse, ...]:
    """Return the grants that affect a card: what each allows, and whether it is given.

    A grant whose texts the card does not have is left out. The order is that of `ALLOWS`.
    """
    gives: dict[Grant, str] = {}
    if texts := [field for field in FIELDS.values() if getattr(card, field).strip()]:
        *most, last = texts
        names = f"{', '.join(most)} and {last} are" if most else f"{last} is"
        gives["fields"] = f"{names} before the history"
    if card.system_prompt.strip():
        gives["system_prompt"] = ALLOWS["system_prompt"]
    if card.post_history_instructions.strip():
        gives["after_history"] = ALLOWS["after_history"]
    entries = [entry for entry in book.entries if entry.is_usable] if book else []
    if moved := sum(entry.position not in IN_HISTORY for entry in entries):
        gives["positions"] = (
            f"{_entries(moved, 'is', 'are')} placed outside the history, as requested"
        )
    roles = []
    if others := sum("roles" in missing_grants(entry, NO_GRANTS) for entry in entries):
        roles.append(f"{_entries(others, 'speaks', 'speak')} as system or assistant")
    if note_role(card) not in ("", "user"):
        roles.append("its depth prompt has the role that it asks for")
    gives["roles"] = "; ".join(roles)
    gives["lore_budget"] = _budget_use(entries, book.token_budget if book else None)
    if scripts := read_scripts(scripts_in(card.extensions)):
        gives["regex"] = f"{ALLOWS['regex']} ({counted_scripts(scripts)})"
    return tuple(
        GrantUse(grant=grant, gives=gives[grant], given=grant in grants)
        for grant in ALLOWS
        if gives.get(grant)
    )


def _budget_use(entries: Sequence[LoreEntry], asked: int | None) -> str:
    uses = [] if asked is None else [f"its lore has its own budget of {asked} tokens"]
    if ignoring := sum(entry.ignore_budget for entry in entries):
        uses.append(f"{_entries(ignoring, 'ignores', 'ignore')} the budget")
    return "; ".join(uses)


def _entries(number: int, one: str, many: str) -> str:
    """Return words such as "2 lore entries are": the number of entries and a verb."""
    return f"1 lore entry {one}" if number == 1 else f"{number} lore entries {many}"
