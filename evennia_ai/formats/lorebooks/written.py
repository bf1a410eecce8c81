"""An entry as its file writes it: of a SillyTavern world file, or of a book of Card V3 or V2.

Both spellings are read into one vocabulary (`EntryFields`). Tools write both into one entry
(`key` and `keys`): in a world file the world's spelling wins, in a card the card's, and the other
one says only what the first leaves out. Reading never fails: a field of the wrong type is as if it
were missing, and a notice says so. An entry without a readable text, or whose data of ours is
wrong, has `problems` and is never active; its JSON stays with the book.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel, to_snake

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.foreign.fields import read_leniently
from evennia_ai.engine.lorebook.conditions import Condition
from evennia_ai.engine.lorebook.entry import (
    Grouping,
    Logic,
    Patterns,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.formats.lorebooks.entry_fields import POSITIONS, V3_POSITIONS, Content
from evennia_ai.formats.lorebooks.extension import (
    AppEntry,
    OwnFields,
    app_entry,
    doubts,
    read_own,
    said,
    unreadable,
)
from evennia_ai.formats.lorebooks.other_programs import with_risu_lines_as_fields
from evennia_ai.formats.lorebooks.values import Flag, Identifier, Number, Texts, is_text


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFields:
    """An entry as its format says it; the names are those of `LoreEntry`.

    `plain` are attributes of it that all formats give as they are (`fields`).
    """

    uid: str
    name: str
    keys: tuple[str, ...]
    secondary_keys: tuple[str, ...]
    selective: bool
    logic: Logic
    patterns: Patterns
    enabled: bool
    constant: bool
    content: str
    position: Position
    depth: int | None
    role: Role
    outlet: str
    order: float
    priority: float
    priority_said: bool
    """Whether it says one; else that is its order."""
    case_sensitive: bool | None
    sources: frozenset[SourceName]
    recursion: Recursion
    timing: Timing
    grouping: Grouping
    chance: float
    conditions: tuple[Condition, ...]
    own: OwnFields
    plain: Mapping[str, Any]
    notices: tuple[str, ...]
    problems: tuple[FormatError, ...] = ()
    """Why it can never be active, beside what the notices say."""


# Marks of an entry that SillyTavern wrote.
_APP_MARKS: Final = frozenset(
    {
        *("position", "probability", "displayIndex", "display_index"),
        *("excludeRecursion", "exclude_recursion", "selectiveLogic", "selective_logic"),
        *("useProbability", "use_probability"),
    }
)


class _V3Entry(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    keys: Texts | None = None
    content: Content | None = None
    extensions: dict[str, Any] | None = None
    enabled: Flag | None = None
    insertion_order: Number | None = None
    case_sensitive: Flag | None = None
    use_regex: Flag | None = None
    constant: Flag | None = None
    name: str | None = None
    priority: Number | None = None
    id: Identifier | None = None
    comment: str | None = None
    selective: Flag | None = None
    secondary_keys: Texts | None = None
    position: Any = None


class _WorldEntry(AppEntry):
    uid: Identifier | None = None
    key: Texts | None = None
    keysecondary: Texts | None = None
    comment: str | None = None
    content: Content | None = None
    constant: Flag | None = None
    selective: Flag | None = None
    order: Number | None = None
    disable: Flag | None = None


def read_fields(raw: Any, *, in_world: bool, default_uid: str, where: str) -> EntryFields:
    """Read an entry of either spelling; `in_world` says whether it stands in a world file."""
    if not isinstance(raw, dict):
        problem = FormatError("book", f"{where}: must be an object", problem="must be an object")
        nothing = from_v3({}, default_uid=default_uid, where=where)
        return replace(nothing, problems=(problem,))
    read = from_world if is_world_entry(raw, in_world=in_world) else from_v3
    return read(raw, default_uid=default_uid, where=where)


def from_v3(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """Return what an entry in the card's spelling says.

    Where its keys are patterns by the standard, `constant` and the secondary keys are ignored.
    """
    written = raw.get("extensions")
    raw, of_lines = with_risu_lines_as_fields(_filled(raw, _V3_OF_WORLD))
    entry, problems = read_leniently(_V3Entry, raw)
    extensions = entry.extensions or {}
    app, unread = app_entry(extensions)
    own, wrong = read_own(extensions.get("evennia_ai"), where=f"{where}.extensions.evennia_ai")
    patterns = _patterns(entry, own, written if isinstance(written, dict) else {})
    order = 100 if entry.insertion_order is None else entry.insertion_order
    usual, misplaced = _position_in_card(entry.position)
    priority = own.priority if entry.priority is None else entry.priority
    cased = app.case_sensitive if entry.case_sensitive is None else entry.case_sensitive
    unsaid = [
        f"{name} is null: taken as missing"
        for name in ("keys", "content", "enabled")
        if name in raw and raw[name] is None
    ]
    return EntryFields(
        uid=default_uid if entry.id is None else entry.id,
        name=entry.comment or entry.name or "",
        keys=tuple(entry.keys or ()),
        secondary_keys=tuple(entry.secondary_keys or ()),
        selective=bool(entry.selective and entry.secondary_keys and patterns != "all"),
        patterns=patterns,
        enabled=entry.enabled is not False,
        constant=bool(entry.constant and patterns != "all"),
        content=entry.content or "",
        order=order,
        priority=order if priority is None else priority,
        priority_said=priority is not None,
        case_sensitive=cased,
        **said(app, usual=usual, chance_counts=True),
        own=own,
        notices=(
            *unsaid,
            *of_lines,
            *_converted(raw, entry),
            *(
                ["constant is ignored beside use_regex (Card V3)"]
                if entry.constant and patterns == "all"
                else []
            ),
            *misplaced,
            *doubts(app),
            *unread,
            *_sentences(problems),
        ),
        problems=(*_without_text(problems, where), *wrong),
    )


def from_world(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """Return what an entry in the spelling of SillyTavern's world files says.

    As in the application, a chance counts only with `useProbability` and secondary keys only with
    `selective`.
    """
    raw = world_spelled(raw)
    entry, problems = read_leniently(_WorldEntry, raw)
    own, wrong = read_own(raw.get("evennia_ai"), where=f"{where}.evennia_ai")
    patterns = "by_form" if own.patterns is None else own.patterns
    order = 100 if entry.order is None else entry.order
    return EntryFields(
        uid=default_uid if entry.uid is None else entry.uid,
        name=entry.comment or "",
        keys=tuple(entry.key or ()),
        secondary_keys=tuple(entry.keysecondary or ()),
        selective=bool(entry.selective and entry.keysecondary and patterns != "all"),
        patterns=patterns,
        enabled=not entry.disable,
        constant=bool(entry.constant and patterns != "all"),
        content=entry.content or "",
        order=order,
        priority=order if own.priority is None else own.priority,
        priority_said=own.priority is not None,
        case_sensitive=entry.case_sensitive,
        **said(entry, usual="before", chance_counts=False),
        own=own,
        notices=(*_converted(raw, entry), *doubts(entry), *_sentences(problems)),
        problems=(*_without_text(problems, where), *wrong),
    )


# What each spelling calls the same: the world's member, the card's.
_TWINS: Final = (
    *(("uid", "id"), ("key", "keys"), ("keysecondary", "secondary_keys")),
    *(("order", "insertion_order"), ("comment", "name")),
)
_WORLD_OF_V3: Final[Mapping[str, str]] = dict(_TWINS)
_V3_OF_WORLD: Final[Mapping[str, str]] = {
    v3: world for world, v3 in _TWINS if world not in ("comment", "key")
}
_WORLD_MARKS: Final = frozenset({"key", "keysecondary", "uid", "disable"})
_APP_MEMBERS: Final = frozenset({*AppEntry.model_fields, *map(to_camel, AppEntry.model_fields)})


def is_world_entry(raw: Any, *, in_world: bool) -> bool:
    """True if an entry counts in the spelling of SillyTavern's world files.

    `in_world` says whether it stands in a world file: there `key` wins over `keys`, elsewhere
    `keys` does.
    """
    if not isinstance(raw, Mapping):
        return in_world
    if "key" in raw and "keys" in raw:
        return in_world
    return "keys" not in raw and not _WORLD_MARKS.isdisjoint(raw)


def unreadable_in_card(raw: Mapping[str, Any]) -> frozenset[str]:
    """The members of an entry in the card's spelling that are as if they were missing."""
    return frozenset(read_leniently(_V3Entry, raw)[1])


def world_spelled(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry with what it says in the card's spelling alone, in the world's."""
    filled = _filled(raw, _WORLD_OF_V3)
    extensions = raw.get("extensions")
    if not isinstance(extensions, dict):
        return filled
    more = {
        name: value
        for name, value in extensions.items()
        if name in _APP_MEMBERS
        and to_camel(to_snake(name)) not in raw
        and to_snake(name) not in raw
    }
    return {**filled, **{name: more[name] for name in more if name not in unreadable(more)}}


def _filled(raw: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """The entry with what it says under the other spelling's name alone (`names`: ours, theirs)."""
    more = {
        ours: raw[theirs]
        for ours, theirs in names.items()
        if raw.get(ours) is None and raw.get(theirs) is not None
    }
    for ours, theirs in (("disable", "enabled"), ("enabled", "disable")):
        is_asked = (ours == "disable") == ("key" in names)
        if is_asked and raw.get(ours) is None and raw.get(theirs) in (True, False):
            more[ours] = not raw[theirs]
    return {**raw, **more} if more else raw


def _patterns(entry: _V3Entry, own: OwnFields, extensions: Mapping[str, Any]) -> Patterns:
    """Which keys are patterns: SillyTavern sets the flag on every entry and goes by the form."""
    if own.patterns is not None:
        return own.patterns
    if entry.use_regex is not False and not _APP_MARKS.isdisjoint(extensions):
        return "by_form"
    return "all" if entry.use_regex else "none"


def _position_in_card(written: Any) -> tuple[Position, tuple[str, ...]]:
    """The place that a card's entry names; tools write SillyTavern's 0 and 1 for the two words."""
    if written is None or written == "":
        return "after", ()
    if isinstance(written, str) and written in V3_POSITIONS:
        return V3_POSITIONS[written], ()
    if type(written) is int and written in (0, 1):
        place = POSITIONS[written]
        return place, (f"position is {written}: taken as {place}_char",)
    shown = one_line(written if isinstance(written, str) else repr(written))[:60]
    return "after", (f"position '{shown}' is not known: after_char counts",)


def _converted(raw: Mapping[str, Any], entry: BaseModel) -> Iterable[str]:
    """A notice for each member that is read although it has another type."""
    for name in ("insertion_order", "order", "priority"):
        if isinstance(raw.get(name), str) and getattr(entry, name, None) is not None:
            yield f"{name} is a text: taken as the number {getattr(entry, name):g}"
    for name in ("enabled", "disable", "use_regex", "constant", "selective", "case_sensitive"):
        if type(raw.get(name)) in (int, str) and getattr(entry, name, None) is not None:
            shown, read = one_line(repr(raw[name])), str(getattr(entry, name)).lower()
            yield f"{name} is {shown}: taken as {read}"
    for name in ("keys", "key", "secondary_keys", "keysecondary"):
        listed = raw.get(name) if hasattr(entry, name) else None
        if isinstance(listed, str):
            yield f"{name} is one text: split at its commas"
        elif isinstance(listed, list) and not all(isinstance(item, str) for item in listed):
            left = sum(not is_text(item) for item in listed)
            told = (
                f"{left} that are neither text nor number are left out"
                if left
                else "numbers are taken as texts"
            )
            yield f"{name} has items that are no texts: {told}"


def _sentences(problems: Mapping[str, str]) -> Iterable[str]:
    """The notices about fields that are ignored; a text that cannot be read is more than that."""
    return (problem for name, problem in problems.items() if name != "content")


def _without_text(problems: Mapping[str, str], where: str) -> Iterable[FormatError]:
    """The error of an entry whose text cannot be read."""
    if "content" in problems:
        problem = problems["content"].removesuffix(": it is ignored").removeprefix("content ")
        yield FormatError("book", f"{where}.content: {problem}", problem=f"content {problem}")
