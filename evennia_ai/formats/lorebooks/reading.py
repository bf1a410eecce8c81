"""Build a `LoreEntry` from the fields of an entry in a file and the decorators in its content.

Decorators win over fields. This module also limits the number and the length of keys.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.lorebook.decorators import (
    MAX_KEYS,
    Absent,
    ParsedContent,
    parse_decorators,
    whole_number,
)
from evennia_ai.engine.lorebook.entry import (
    MAX_KEY,
    NO_GATES,
    NO_GROUPS,
    NO_TIMING,
    Anchor,
    Gates,
    Grouping,
    LoreEntry,
    Position,
    Timing,
)
from evennia_ai.engine.prompt.components import MAX_DEPTH
from evennia_ai.engine.prompt.conditions import EVENT_KIND
from evennia_ai.engine.prompt.messages import MOVEMENT
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.formats.lorebooks.entry_fields import ROLES
from evennia_ai.formats.lorebooks.values import Where
from evennia_ai.formats.lorebooks.written import EntryFields

# The injection depth of an entry that is placed inside the history but has no depth.
DEFAULT_DEPTH: Final = 4

# Maps the values of @@position to the position and anchor of the entry.
_PLACES: Final[Mapping[str, tuple[Position, Anchor | None]]] = {
    "before_desc": ("before", Anchor(component="char_description", side="before")),
    "after_desc": ("after", Anchor(component="char_description", side="after")),
    "personality": ("anchor", Anchor(component="char_personality", side="after")),
    "scenario": ("anchor", Anchor(component="scenario", side="after")),
}


# Attributes of `LoreEntry` that are copied from `EntryFields`.
_COPIED: Final = (
    *("uid", "name", "selective", "logic", "patterns", "enabled", "constant", "order", "priority"),
    *("case_sensitive", "recursion", "chance"),
)


def build_entry(
    fields: EntryFields, *, label: str, index: int, absent: Absent
) -> tuple[LoreEntry, tuple[str, ...]]:
    """Build a lore entry from its fields and the decorators in its content.

    An entry with problems is refused: it keeps the values that could be read, and is never active.

    Args:
        label: the name of the book.
        index: the position of the entry in the book.
        absent: decorators that have no effect where the entry is used, with the reason.

    Returns:
        The entry, and the notices about it.
    """
    head = parse_decorators(fields.content, absent=absent)
    keys, key_notices = _limit_keys(fields.keys, "key")
    second, second_notices = _limit_keys(fields.secondary_keys, "secondary key")
    scan_depth = head.value("scan_depth")
    decorated = {} if scan_depth is None else {"scan_depth": whole_number(scan_depth)}
    entry = LoreEntry(
        **{name: getattr(fields, name) for name in _COPIED},
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
        timing=_with_own_clock(fields),
        grouping=_with_own_cooldown(fields),
        conditions=fields.conditions + fields.own.conditions,
        decorators=head.decorators,
        refused="; ".join(map(_problem_in_words, fields.problems)) or None,
        **{**fields.plain, **fields.own.plain, **decorated},
    )
    refused = [f"is never active: {entry.refused}"] if entry.refused else []
    return entry, (*refused, *fields.notices, *key_notices, *second_notices, *head.notices)


def _problem_in_words(problem: FormatError) -> str:
    """Return words for an error without the entry's name, which notices already contain."""
    path = str(Where("evennia_ai", problem.path)) + ": " if problem.path else ""
    return one_line(path + problem.problem)


def _limit_keys(keys: tuple[str, ...], what: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of an entry within the limits, and notices about the other keys.

    A key that is too long becomes an empty key, which never matches. Removing it instead would
    change the logic of secondary keys. Regular expressions have their own limit.
    """
    if len(keys) <= MAX_KEYS and max(map(len, keys), default=0) <= MAX_KEY:
        return keys, ()
    notices: list[str] = []
    if len(keys) > MAX_KEYS:
        notices.append(f"has {len(keys)} {what}s: only the first {MAX_KEYS} are used")
    kept = tuple(
        "" if len(key) > MAX_KEY and not key.lstrip().startswith("/") else key
        for key in keys[:MAX_KEYS]
    )
    if kept != keys[:MAX_KEYS]:
        notices.append(f"a {what} of more than {MAX_KEY} characters: it never matches")
    return kept, tuple(notices)


# The attributes of `LoreEntry` that describe its position, by name. Attributes that the position
# does not need are left out.
_Place = dict[str, Any]


def _place(fields: EntryFields, head: ParsedContent) -> _Place:
    """Return an entry's position: from a decorator, `evennia_ai` data or the fields, in order."""
    if named := head.value("position"):
        position, anchor = _PLACES[named]
        return {"position": position, "anchor": anchor}
    for name in ("depth", "reverse_depth"):
        if depth := head.value(name):
            return _at_depth(whole_number(depth), from_oldest=name != "depth")
    own = fields.own
    if own.mention is not None:
        return {"position": "at_mention", "mention": own.mention}
    if own.anchor is not None:
        return {"position": "anchor", "anchor": own.anchor}
    if own.outlet:
        return {"position": "outlet", "outlet": own.outlet}
    return _place_by_format(fields)


def _place_by_format(fields: EntryFields) -> _Place:
    if fields.position == "outlet":
        return {"position": "outlet", "outlet": fields.outlet}
    if fields.position != "depth":
        return {"position": fields.position}
    return _at_depth(DEFAULT_DEPTH if fields.depth is None else fields.depth, from_oldest=False)


def _at_depth(asked: int, *, from_oldest: bool) -> _Place:
    """Return a position at a depth; if the depth is clamped, `asked_depth` is the original."""
    depth = min(max(asked, 0), MAX_DEPTH)
    place: _Place = {"position": "depth", "depth": depth, "from_oldest": from_oldest}
    return place if depth == asked else {**place, "asked_depth": asked}


def _hears_movement(fields: EntryFields) -> bool:
    """True if an entry is set to scan movement events, or has a condition on them."""
    own = fields.own
    if own.movement is not None:
        return own.movement
    asked = (c for c in own.conditions if c.fact == EVENT_KIND and c.test == "is_any")
    return any(not MOVEMENT.isdisjoint(condition.values) for condition in asked)


def _with_own_clock(fields: EntryFields) -> Timing:
    clock, timing = fields.own.clock, fields.timing
    if clock is None or timing is NO_TIMING:
        return timing
    return replace(timing, clock=clock)


def _with_own_cooldown(fields: EntryFields) -> Grouping:
    grouping, cooldown = fields.grouping, fields.own.group_cooldown
    if not cooldown or grouping is NO_GROUPS:
        return grouping
    return replace(grouping, cooldown=cooldown)


def _gates(head: ParsedContent, *, patterns_only: bool) -> Gates:
    """Return the gates of an entry: the conditions for its activation that decorators set.

    `@@exclude_keys` is ignored if all keys are regular expressions.
    """
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
