"""Read lore entries with the field names of SillyTavern's world files, or of Card V3 and V2.

Both sets of names become the same fields (`EntryFields`). Some tools write both into one entry, for
example `key` and `keys`. Then the names of world files win in world files, and the names of cards
win in cards. The other names only fill gaps.

Reading never fails: a field of a wrong type counts as missing, with a notice. An entry without a
readable text, or with errors in its `evennia_ai` data, has `problems` and is never active. Its JSON
is kept unchanged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel, to_snake

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.foreign.fields import read_leniently
from evennia_ai.engine.lorebook.entry import (
    Grouping,
    Logic,
    Patterns,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.engine.prompt.conditions import Condition
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.formats.lorebooks.entry_fields import POSITIONS, V3_POSITIONS, Content
from evennia_ai.formats.lorebooks.extension import (
    AppEntry,
    OwnFields,
    app_fields,
    list_doubts,
    read_app_entry,
    read_own,
    unreadable_members,
)
from evennia_ai.formats.lorebooks.other_programs import with_risu_lines_as_fields
from evennia_ai.formats.lorebooks.values import Flag, Identifier, Number, Texts, is_text


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFields:
    """The fields of a lore entry before its decorators are read, named as in `LoreEntry`."""

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
    """True if the file sets a priority; otherwise the order is used as the priority."""
    case_sensitive: bool | None
    sources: frozenset[SourceName]
    recursion: Recursion
    timing: Timing
    grouping: Grouping
    chance: float
    conditions: tuple[Condition, ...]
    own: OwnFields
    plain: Mapping[str, Any]
    """Further attributes, which are copied to `LoreEntry` (see `entry_fields`)."""
    notices: tuple[str, ...]
    problems: tuple[FormatError, ...] = ()
    """Errors that prevent the entry from ever being active."""


# An entry in a card with one of these members under `extensions` was written by SillyTavern.
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
    """Read an entry of a world file (`in_world` is True) or of a card, with either field names."""
    if not isinstance(raw, dict):
        problem = FormatError("book", f"{where}: must be an object", problem="must be an object")
        nothing = read_v3_entry({}, default_uid=default_uid, where=where)
        return replace(nothing, problems=(problem,))
    read = read_world_entry if is_world_entry(raw, in_world=in_world) else read_v3_entry
    return read(raw, default_uid=default_uid, where=where)


def read_v3_entry(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """Read an entry with the field names of Card V3 and V2.

    With `use_regex`, `constant` and secondary keys are ignored (Card V3).
    """
    written = raw.get("extensions")
    raw, decorator_notices = with_risu_lines_as_fields(_fill_gaps(raw, _V3_OF_WORLD))
    entry, problems = read_leniently(_V3Entry, raw)
    extensions = entry.extensions or {}
    app, unread = read_app_entry(extensions)
    own, wrong = read_own(extensions.get("evennia_ai"), where=f"{where}.extensions.evennia_ai")
    patterns = _patterns(entry, own, written if isinstance(written, dict) else {})
    order = 100 if entry.insertion_order is None else entry.insertion_order
    usual, misplaced = _position_in_card(entry.position)
    priority = own.priority if entry.priority is None else entry.priority
    cased = app.case_sensitive if entry.case_sensitive is None else entry.case_sensitive
    unsaid = [
        f"{name} is null: read as missing"
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
        **app_fields(app, usual=usual, chance_counts=True),
        own=own,
        notices=(
            *unsaid,
            *decorator_notices,
            *_conversion_notices(raw, entry),
            *(
                ["constant is ignored next to use_regex (Card V3)"]
                if entry.constant and patterns == "all"
                else []
            ),
            *misplaced,
            *list_doubts(app),
            *unread,
            *_ignored_fields(problems),
        ),
        problems=(*_text_problem(problems, where), *wrong),
    )


def read_world_entry(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """Read an entry with the field names of SillyTavern's world files.

    As in SillyTavern, a chance is used only with `useProbability`, and secondary keys only with
    `selective`.
    """
    raw = respell_as_world(raw)
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
        **app_fields(entry, usual="before", chance_counts=False),
        own=own,
        notices=(
            *_conversion_notices(raw, entry),
            *list_doubts(entry),
            *_ignored_fields(problems),
        ),
        problems=(*_text_problem(problems, where), *wrong),
    )


# Pairs of members of an entry with the same meaning: the name in world files and the name in cards.
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
    """True if an entry is read with the field names of SillyTavern's world files.

    If an entry has both `key` and `keys`, `key` wins in world files (`in_world`) and `keys`
    elsewhere.
    """
    if not isinstance(raw, Mapping):
        return in_world
    if "key" in raw and "keys" in raw:
        return in_world
    return "keys" not in raw and not _WORLD_MARKS.isdisjoint(raw)


def unreadable_in_card(raw: Mapping[str, Any]) -> frozenset[str]:
    """Return the members of an entry that cannot be read with the field names of cards."""
    return frozenset(read_leniently(_V3Entry, raw)[1])


def respell_as_world(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the entry with the field names of world files.

    Values that the entry has only under a name of cards are copied to the name of world files.
    """
    filled = _fill_gaps(raw, _WORLD_OF_V3)
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
    return {**filled, **{name: more[name] for name in more if name not in unreadable_members(more)}}


def _fill_gaps(raw: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Return an entry in which missing members are copied from members of another name.

    Args:
        names: the other name of each wanted member, such as `keys` for `key`.
    """
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
    """Return which keys of an entry in a card are regular expressions.

    SillyTavern sets `use_regex` on every entry and decides by the form of each key. So the flag is
    ignored in entries that SillyTavern wrote.
    """
    if own.patterns is not None:
        return own.patterns
    if entry.use_regex is not False and not _APP_MARKS.isdisjoint(extensions):
        return "by_form"
    return "all" if entry.use_regex else "none"


def _position_in_card(written: Any) -> tuple[Position, tuple[str, ...]]:
    """Return the position of an entry in a card, and notices about it.

    Some tools write SillyTavern's numbers 0 and 1 instead of words.
    """
    if written is None or written == "":
        return "after", ()
    if isinstance(written, str) and written in V3_POSITIONS:
        return V3_POSITIONS[written], ()
    if type(written) is int and written in (0, 1):
        place = POSITIONS[written]
        return place, (f"position is {written}: read as {place}_char",)
    shown = one_line(written if isinstance(written, str) else repr(written))[:60]
    return "after", (f"position '{shown}' is unknown: after_char is used",)


def _conversion_notices(raw: Mapping[str, Any], entry: BaseModel) -> Iterable[str]:
    """Yield a notice for each member of an entry that was converted from another type."""
    for name in ("insertion_order", "order", "priority"):
        if isinstance(raw.get(name), str) and getattr(entry, name, None) is not None:
            yield f"{name} is a text: read as the number {getattr(entry, name):g}"
    for name in ("enabled", "disable", "use_regex", "constant", "selective", "case_sensitive"):
        if type(raw.get(name)) in (int, str) and getattr(entry, name, None) is not None:
            shown, read = one_line(repr(raw[name])), str(getattr(entry, name)).lower()
            yield f"{name} is {shown}: read as {read}"
    for name in ("keys", "key", "secondary_keys", "keysecondary"):
        listed = raw.get(name) if hasattr(entry, name) else None
        if isinstance(listed, str):
            yield f"{name} is one text: split at its commas"
        elif isinstance(listed, list) and not all(isinstance(item, str) for item in listed):
            left = sum(not is_text(item) for item in listed)
            how = (
                f"{left} that are neither text nor number are left out"
                if left
                else "numbers are read as texts"
            )
            yield f"{name} has items that are not text: {how}"


def _ignored_fields(problems: Mapping[str, str]) -> Iterable[str]:
    """Return notices on an entry's unreadable fields except its content.

    Unreadable content is an error, not a notice.
    """
    return (problem for name, problem in problems.items() if name != "content")


def _text_problem(problems: Mapping[str, str], where: str) -> Iterable[FormatError]:
    """Yield the error for an entry whose content cannot be read."""
    if "content" in problems:
        problem = problems["content"].removesuffix(": it is ignored").removeprefix("content ")
        yield FormatError("book", f"{where}.content: {problem}", problem=f"content {problem}")
