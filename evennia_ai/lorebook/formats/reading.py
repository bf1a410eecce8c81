"""How foreign entries become ours: the format's fields first, then decorators, which win.

An entry is of a SillyTavern world file (`from_world`) or of a Card V3 or V2 book (`from_v3`); both
are told in one vocabulary (`EntryFields`), and here they become a `LoreEntry`. What of the
standard's own fields cannot be read is an error. The bounds against hostile files stand here too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import ListOf, one_line
from evennia_ai.foreign.fields import as_format_error
from evennia_ai.lorebook.conditions import EVENT_KIND, Condition
from evennia_ai.lorebook.decorators import (
    MAX_KEYS,
    NO_ICONS,
    Absent,
    Decorated,
    read_decorators,
    whole_number,
)
from evennia_ai.lorebook.entry import (
    MAX_KEY,
    NO_GATES,
    NO_GROUPS,
    NO_TIMING,
    Anchor,
    Gates,
    Grouping,
    Logic,
    LoreEntry,
    Patterns,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.lorebook.formats.entry_fields import ROLES, V3_POSITIONS, Content
from evennia_ai.lorebook.formats.extension import (
    AppEntry,
    OwnFields,
    app_entry,
    doubts,
    read_own,
    said,
)
from evennia_ai.lorebook.formats.values import Flag, Identifier, Number, Texts
from evennia_ai.lorebook.scan.regex.pattern import is_delimited
from evennia_ai.prompt.components import MAX_DEPTH
from evennia_ai.prompt.messages import MOVEMENT, Role
from evennia_ai.prompt.templates.template import compile_template

# Injection depth of an entry that stands in the history and does not say where.
DEFAULT_DEPTH: Final = 4


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

    keys: ListOf[str] = []
    content: Content = ""
    extensions: dict[str, Any] | None = None
    enabled: Flag = True
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
    position: str | None = None


def from_v3(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """What the entry says; pydantic's or a FormatError names the field that is wrong.

    Where its keys are patterns by the standard, `constant` and the secondary keys are ignored.
    """
    entry = _V3Entry.model_validate(raw)
    extensions = entry.extensions or {}
    app, unread = app_entry(extensions)
    own = read_own(extensions.get("evennia_ai"), where=f"{where}.extensions.evennia_ai")
    patterns = _patterns(entry, own, extensions)
    order = 100 if entry.insertion_order is None else entry.insertion_order
    usual = V3_POSITIONS.get(entry.position or "", "after")
    priority = own.priority if entry.priority is None else entry.priority
    cased = app.case_sensitive if entry.case_sensitive is None else entry.case_sensitive
    return EntryFields(
        uid=default_uid if entry.id is None else entry.id,
        name=entry.comment or entry.name or "",
        keys=tuple(entry.keys),
        secondary_keys=tuple(entry.secondary_keys or ()),
        selective=bool(entry.selective and entry.secondary_keys and patterns != "all"),
        patterns=patterns,
        enabled=entry.enabled,
        constant=bool(entry.constant and patterns != "all"),
        content=entry.content,
        order=order,
        priority=order if priority is None else priority,
        case_sensitive=cased,
        **said(app, usual=usual, chance_counts=True),
        own=own,
        notices=(*_notices(entry, raw, patterns), *doubts(app), *unread),
    )


def _patterns(entry: _V3Entry, own: OwnFields, extensions: Mapping[str, Any]) -> Patterns:
    """Which keys are patterns: SillyTavern sets the flag on every entry and goes by the form."""
    if own.patterns is not None:
        return own.patterns
    if entry.use_regex is not False and not _APP_MARKS.isdisjoint(extensions):
        return "by_form"
    return "all" if entry.use_regex else "none"


def _notices(entry: _V3Entry, raw: Mapping[str, Any], patterns: Patterns) -> Iterable[str]:
    """What is read although it has another type, and what is not taken as it is written."""
    for name in ("insertion_order", "priority"):
        if isinstance(raw.get(name), str):
            yield f"{name} is a text: taken as the number {getattr(entry, name):g}"
    for name in ("enabled", "use_regex", "constant", "selective", "case_sensitive"):
        if type(raw.get(name)) is int:
            yield f"{name} is {raw[name]}: taken as {str(getattr(entry, name)).lower()}"
    if entry.use_regex and patterns == "by_form" and not any(map(is_delimited, entry.keys)):
        yield "use_regex is set, but no key is a /pattern/: they are taken as words"
    if entry.constant and patterns == "all":
        yield "constant is ignored beside use_regex (Card V3)"
    if isinstance(raw.get("secondary_keys"), str):
        yield "secondary_keys is one text: split at its commas"
    if entry.position and entry.position not in V3_POSITIONS:
        yield f"position '{one_line(entry.position)[:60]}' is not known: after_char counts"


class _WorldEntry(AppEntry):
    uid: Identifier | None = None
    key: ListOf[str] | None = None
    keysecondary: ListOf[str] | None = None
    comment: str | None = None
    content: Content | None = None
    constant: Flag | None = None
    selective: Flag | None = None
    order: Number | None = None
    disable: Flag | None = None


def from_world(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """What the entry says; pydantic's or a FormatError names the field that is wrong.

    As in the application, a chance counts only with `useProbability` and secondary keys only with
    `selective`.
    """
    entry = _WorldEntry.model_validate(raw)
    own = read_own(raw.get("evennia_ai"), where=f"{where}.evennia_ai")
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
        case_sensitive=entry.case_sensitive,
        **said(entry, usual="before", chance_counts=False),
        own=own,
        notices=tuple(doubts(entry)),
    )


_WORLD_MARKS: Final = frozenset({"key", "keysecondary", "uid", "disable"})
# The values of @@position, as places.
_PLACES: Final[Mapping[str, tuple[Position, Anchor | None]]] = {
    "before_desc": ("before", Anchor(component="char_description", side="before")),
    "after_desc": ("after", Anchor(component="char_description", side="after")),
    "personality": ("anchor", Anchor(component="char_personality", side="after")),
    "scenario": ("anchor", Anchor(component="scenario", side="after")),
}


# What an entry has as its format says it.
_AS_THEY_ARE: Final = (
    *("uid", "name", "selective", "logic", "patterns", "enabled", "constant", "order", "priority"),
    *("case_sensitive", "recursion", "chance"),
)


def is_world_entry(raw: Mapping[str, Any]) -> bool:
    """Whether an entry is spelled as in SillyTavern's world files."""
    return "keys" not in raw and not _WORLD_MARKS.isdisjoint(raw)


def read_entry(
    raw: Any, *, label: str, index: int, default_uid: str, where: str, absent: Absent = NO_ICONS
) -> tuple[LoreEntry, tuple[str, ...]]:
    """The entry and the notices about it; `absent` decorators count for nothing.

    FormatError names the field that is wrong.
    """
    if not isinstance(raw, dict):
        raise FormatError("book", f"{where}: must be an object")
    read = from_world if is_world_entry(raw) else from_v3
    try:
        fields = read(raw, default_uid=default_uid, where=where)
    except ValidationError as error:
        raise as_format_error(error, kind="book", where=where) from error
    return _entry(fields, label=label, index=index, absent=absent)


def _entry(
    fields: EntryFields, *, label: str, index: int, absent: Absent
) -> tuple[LoreEntry, tuple[str, ...]]:
    head = read_decorators(fields.content, absent=absent)
    keys, key_notices = _bounded(fields.keys, "key")
    second, second_notices = _bounded(fields.secondary_keys, "secondary key")
    seen = head.value("scan_depth")
    deeper = {} if seen is None else {"scan_depth": whole_number(seen)}
    entry = LoreEntry(
        **{name: getattr(fields, name) for name in _AS_THEY_ARE},
        index=index,
        origin=f"lore:{label}#{fields.uid}",
        keys=keys,
        secondary_keys=second,
        template=compile_template(head.text, trust="imported"),
        **_place(fields, head),
        role=next((role for role in ROLES if role == head.value("role")), fields.role),
        first_to_go=fields.own.first_to_go or head.has("ignore_on_max_context"),
        sources=fields.sources | fields.own.sources,
        hears_movement=_hears_movement(fields),
        gates=_gates(head, patterns_only=fields.patterns == "all"),
        timing=_timing(fields),
        grouping=_grouping(fields),
        conditions=fields.conditions + fields.own.conditions,
        decorators=head.decorators,
        **{**fields.plain, **deeper},
    )
    return entry, (*fields.notices, *key_notices, *second_notices, *head.notices)


def _bounded(keys: tuple[str, ...], what: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys within the limits, and a notice where there were others.

    A word that is too long becomes an empty key, which nothing matches, so that the logic of
    secondary keys stays what it was; patterns have a limit of their own.
    """
    if len(keys) <= MAX_KEYS and max(map(len, keys), default=0) <= MAX_KEY:
        return keys, ()
    notices: list[str] = []
    if len(keys) > MAX_KEYS:
        notices.append(f"has {len(keys)} {what}s: the first {MAX_KEYS} count")
    kept = tuple(
        "" if len(key) > MAX_KEY and not key.lstrip().startswith("/") else key
        for key in keys[:MAX_KEYS]
    )
    if kept != keys[:MAX_KEYS]:
        notices.append(f"a {what} of more than {MAX_KEY} characters: it never matches")
    return kept, tuple(notices)


# Where an entry stands; what is left out does not belong to the position.
_Place = dict[str, Any]


def _place(fields: EntryFields, head: Decorated) -> _Place:
    """The place that a decorator names, else our own data, else the format's fields."""
    if named := head.value("position"):
        position, anchor = _PLACES[named]
        return {"position": position, "anchor": anchor}
    for name in ("depth", "reverse_depth"):
        if depth := head.value(name):
            return _at_depth(whole_number(depth), from_oldest=name != "depth")
    return _own_place(fields) or _usual_place(fields)


def _own_place(fields: EntryFields) -> _Place | None:
    """The place that our own data names."""
    own = fields.own
    if own.mention is not None:
        return {"position": "at_mention", "mention": own.mention}
    if own.anchor is not None:
        return {"position": "anchor", "anchor": own.anchor}
    return {"position": "outlet", "outlet": own.outlet} if own.outlet else None


def _usual_place(fields: EntryFields) -> _Place:
    if fields.position == "outlet":
        return {"position": "outlet", "outlet": fields.outlet}
    if fields.position != "depth":
        return {"position": fields.position}
    return _at_depth(DEFAULT_DEPTH if fields.depth is None else fields.depth, from_oldest=False)


def _at_depth(asked: int, *, from_oldest: bool) -> _Place:
    """The place at a depth, with the one that was asked for where no history has it."""
    depth = min(max(asked, 0), MAX_DEPTH)
    place: _Place = {"position": "depth", "depth": depth, "from_oldest": from_oldest}
    return place if depth == asked else {**place, "asked_depth": asked}


def _hears_movement(fields: EntryFields) -> bool:
    """Whether it says so, or is for events of who comes and goes and so asks for them."""
    own = fields.own
    if own.movement is not None:
        return own.movement
    asked = (c for c in own.conditions if c.fact == EVENT_KIND and c.test == "is_any")
    return any(not MOVEMENT.isdisjoint(condition.values) for condition in asked)


def _timing(fields: EntryFields) -> Timing:
    clock, timing = fields.own.clock, fields.timing
    if clock is None or timing is NO_TIMING:
        return timing
    return replace(timing, clock=clock)


def _grouping(fields: EntryFields) -> Grouping:
    grouping, cooldown = fields.grouping, fields.own.group_cooldown
    if not cooldown or grouping is NO_GROUPS:
        return grouping
    return replace(grouping, cooldown=cooldown)


def _gates(head: Decorated, *, patterns_only: bool) -> Gates:
    """What the decorators ask; `@@exclude_keys` is ignored where all keys are patterns."""
    if not head.decorators:
        return NO_GATES

    def number(name: str) -> int | None:
        value = head.value(name)
        return None if value is None else whole_number(value)

    return Gates(
        forced=head.has("activate"),
        forbidden=head.has("dont_activate"),
        greeting=number("is_greeting"),
        replies_from=number("activate_only_after"),
        every_replies=number("activate_only_every"),
        additional=tuple(head.lists("additional_keys")),
        excluded=() if patterns_only else next(iter(head.lists("exclude_keys")), ()),
        user_icon=head.value("is_user_icon"),
        kept_after_match=head.has("keep_activate_after_match"),
        never_after_match=head.has("dont_activate_after_match"),
    )
