"""Placement: active entries become fragments of the prompt, each at the place it asks for.

- Entries before or after the character, around the examples or next to a component join a shared
  message.
- An entry with a depth has a message of its own.
- Entries around the author's note share the note's message.
- The texts of entries in an outlet are joined into a value that components may name.

If a book lacks the grant for positions, its entries are placed at the greatest depth instead.

In the layout `cache`, an entry that depends on what is said is never placed before the history,
because a changed text there would invalidate the provider's prompt cache. The entry joins the
dynamic message. If its book is frozen, the entry is a separate message before the dynamic message,
and it stays there in later turns.

An entry with the position "at_mention" gets the depth of the message that contains its key, and so
moves along with that message. If the message was cut away, the entry is placed at the top of the
history. Otherwise it is treated like any text with that depth.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.activation.active_books import ActiveBook
from evennia_ai.engine.lorebook.activation.candidate import ActiveEntry, Candidate
from evennia_ai.engine.lorebook.activation.entry_variables import entry_dependence
from evennia_ai.engine.lorebook.book import is_moved
from evennia_ai.engine.lorebook.entry import IN_HISTORY, Anchor, LoreEntry, Mention, Position
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules
from evennia_ai.engine.lorebook.scan.hit_cache import EVENT
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    CONTAINED_PRIORITY,
    DEFAULT_ORDER,
    HISTORY_ID,
    MAX_DEPTH,
    Grants,
)
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.fragments import (
    DYNAMIC,
    Beside,
    Claim,
    Fragment,
    Layout,
    SharedMessage,
    Tier,
    make_fragment,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.messages import OF_LORE
from evennia_ai.engine.prompt.notes import (
    AuthorsNote,
    ExpandedNote,
    Notes,
    message_next_to,
    note_origin,
)
from evennia_ai.engine.prompt.prefix_rules import refuse_before_history, restrict_claim
from evennia_ai.engine.prompt.templates.value_names import OUTLET
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict

# The last fragment made for an entry, after the inputs it was made from. Equal inputs reuse it.
_FRAGMENT: Final = Slot[
    tuple[tuple[SharedMessage | None, Layout, TokenCounter], Fragment | Verdict]
]("fragment")
NOTE_KEY: Final = "note"
_SEPARATOR: Final = "\n"
_EXAMPLES: Final = "dialogue_examples"
_AFTER: Final = "world_info_after"
_JOINTS: Final[Mapping[Position, str]] = {"before": "world_info_before", "after": _AFTER}
_ANCHORS: Final[Mapping[Position, Anchor]] = {
    "examples_before": Anchor(component=_EXAMPLES, side="before"),
    "examples_after": Anchor(component=_EXAMPLES, side="after"),
}
_AROUND_NOTE: Final = ("note_top", "note_bottom")
_ELSEWHERE: Final = (*_AROUND_NOTE, "outlet")
# Signs in sort keys. They place entries above the author's note before it, and others after it.
_ABOVE, _BETWEEN, _BELOW = "!", "-", "~"


class _PlacedEntries(NamedTuple):
    """Active entries with their places, reused in later turns with the same active entries."""

    rules: str
    active: list[Candidate]
    entries: tuple[ActiveEntry, ...]
    moving: list[int]
    """The indexes of the entries that are placed next to the message with their key."""


_PLACED: Final = Slot[_PlacedEntries]("placed")


def place_entries(
    active: list[Candidate],
    books: Sequence[ActiveBook],
    history: History,
    *,
    rules: ActivationRules,
) -> tuple[ActiveEntry, ...]:
    """Return the active entries with their places, in the order of their activation."""
    if not active:
        return ()
    memo = books[0].window.memo
    known = memo.get(_PLACED)
    if known is None or known.rules != rules.rules or known.active != active:
        entries = [one.active or _restrict(_make_active(one), one.book.grants) for one in active]
        if PRESET_FLAGS[rules.rules].ties_reversed:
            entries = order_as_sillytavern(entries)
        for one, entry in zip(active, entries, strict=True):
            one.active = entry
        moving = [at for at, one in enumerate(active) if one.entry.mention is not None]
        known = memo[_PLACED] = _PlacedEntries(rules.rules, active, tuple(entries), moving)
    if not known.moving:
        return known.entries
    placed = list(known.entries)
    for at in known.moving:
        one = known.active[at]
        depth, beside = _place_at_mention(one.entry, books[one.rank], history)
        entry = one.active or placed[at]
        if (entry.depth, entry.beside) != (depth, beside):
            entry = replace(entry, depth=depth, beside=beside)
        one.active = placed[at] = entry
    return tuple(placed)


_BY_NOTHING: Final = Beside(
    None, "after the newest message, because no message has one of its keys"
)
_BY_EVENT: Final = Beside(None, "after the newest message, because the event has one of its keys")


def _place_at_mention(entry: LoreEntry, book: ActiveBook, history: History) -> tuple[int, Beside]:
    """Return the depth of an entry next to the message with its key, and that message.

    If the event contains a key, the entry is placed after the newest message, before the event. It
    is placed there, too, if no message contains a key, because something else activated the entry.
    """
    mention = entry.mention or Mention()
    keys = book.key_index.entry_keys[entry.index].primary
    seen = book.depth_in_pass if entry.scan_depth is None else entry.scan_depth
    place: int | None = None
    for age, found in book.window.mentions(keys, movement=entry.hears_movement):
        # Messages within the scan depth are preferred. An older message is used only if none of
        # them has a key. So the search ends at the scan depth if a message was found by then.
        if place is not None and age >= seen:
            break
        place = found
        if mention.message == "newest":
            break
    if place is None or place == EVENT:
        return 0, _BY_NOTHING if place is None else _BY_EVENT
    first = place if mention.side == "before" else place + 1
    where = f"right {mention.side} {{}}, which has one of its keys"
    return history.counted(first), Beside(place, where)


def _restrict(entry: ActiveEntry, grants: Grants) -> ActiveEntry:
    """Return the entry with only the place and role that the grants of its book allow."""
    if grants == ALL_GRANTS:
        return entry
    if is_moved(entry.position, grants):
        entry = replace(
            entry, position="depth", depth=MAX_DEPTH, from_oldest=False, outlet="", anchor=None
        )
    if "lore_budget" not in grants:
        entry = replace(entry, priority=min(entry.priority, CONTAINED_PRIORITY))
    return entry if "roles" in grants else replace(entry, role="user", keeps_role=True)


def _make_active(one: Candidate) -> ActiveEntry:
    """Make an active entry from a candidate, at the place that the entry asks for."""
    book, entry = one.book, one.entry
    return ActiveEntry(
        origin=entry.origin,
        label=one.label,
        book=book.label,
        uid=entry.uid,
        name=entry.name,
        text=one.text,
        tokens=one.tokens,
        position=entry.position,
        depth=entry.depth,
        from_oldest=entry.from_oldest,
        outlet=entry.outlet,
        anchor=entry.anchor,
        role=entry.role,
        order=entry.order,
        sort_key=(entry.order, f"{one.rank:04}:{entry.index:06}"),
        priority=entry.priority,
        constant=entry.constant,
        revision=book.revision,
        depends_on_speech=entry_dependence(entry),
        identity=one.identity,
        frozen=book.mode == "frozen",
    )


def in_output_order(entries: Iterable[ActiveEntry]) -> list[ActiveEntry]:
    """Sort the entries at one place of the prompt from top to bottom."""
    return sorted(entries, key=lambda entry: entry.sort_key)


def outlets_of(entries: Iterable[ActiveEntry]) -> dict[str, list[ActiveEntry]]:
    """Map the name of each outlet to its entries, from top to bottom.

    An entry that asks for an outlet without a name has no place.
    """
    outlets: dict[str, list[ActiveEntry]] = {}
    for entry in in_output_order(entries):
        if entry.position == "outlet" and entry.outlet:
            outlets.setdefault(entry.outlet, []).append(entry)
    return outlets


def lore_fragments(
    entries: Iterable[ActiveEntry],
    *,
    components: ComponentSet,
    shared_messages: Mapping[str, SharedMessage],
    layout: Layout,
    counter: TokenCounter,
) -> list[Fragment | Verdict]:
    """Make a fragment or a verdict for each entry, except entries at the note and in outlets.

    `shared_messages` has the messages before and after the character's description, by the key of
    the component that begins each of them.
    """
    own = [e for e in entries if e.position not in _ELSEWHERE and e.text.strip()]
    made = [_entry_fragment(entry, components, shared_messages, layout, counter) for entry in own]
    if not any(entry.frozen for entry in own):
        return made
    places = {entry.origin: at for at, entry in enumerate(in_output_order(own))}
    return [
        _own_message(
            fragment, number=places[entry.origin], identity=entry.identity, counter=counter
        )
        if entry.frozen and isinstance(fragment, Fragment) and fragment.claim.shared is DYNAMIC
        else fragment
        for entry, fragment in zip(own, made, strict=True)
    ]


def outlet_values(entries: Sequence[ActiveEntry]) -> dict[str, str]:
    """Return the value of each outlet for templates: its entries' texts, one below the other."""
    return {
        OUTLET + name: _SEPARATOR.join(entry.text for entry in members)
        for name, members in outlets_of(entries).items()
    }


def outlet_verdicts(
    entries: Iterable[ActiveEntry], *, components: ComponentSet, notes: Notes
) -> list[Verdict]:
    """Return a verdict on each entry in an outlet, with the texts that name the outlet."""
    made: list[Verdict] = []
    for entry in entries:
        if entry.position == "outlet":
            value = OUTLET + entry.outlet
            readers = [f"component {key}" for key in components.keys_reading(value)]
            readers += notes.origins_reading(value)
            where = f"in the outlet '{entry.outlet}' of {', '.join(readers)}"
            outlet = f"'{entry.outlet}' ({{{{outlet::{entry.outlet}}}}})"
            why = where if readers else f"no component or note names the outlet {outlet}"
            made.append(_verdict(entry, why, kept=bool(readers)))
    return made


def note_fragments(
    notes: Sequence[ExpandedNote],
    entries: Iterable[ActiveEntry],
    *,
    components: ComponentSet,
    keeps_blank: bool,
    layout: Layout,
    counter: TokenCounter,
) -> list[Fragment | Verdict]:
    """Make the fragments of author's notes, and of the entries above and below the first note.

    The first note and the entries around it share a message. If that note is not due in this turn,
    its entries are left out. If the note is empty and `keeps_blank` is True, a blank line stays in
    its place. Without any note, the entries are placed where a note would be.
    """
    made = [one.made for one in notes]
    around = [entry for entry in entries if entry.position in _AROUND_NOTE and entry.text.strip()]
    if not around:
        return made
    first = notes[0] if notes else None
    beside = None if first is None else message_next_to(first.note, 0, components=components)
    return [
        *_first_note(
            first, around, beside, keeps_blank=keeps_blank, layout=layout, counter=counter
        ),
        *made[1:],
    ]


def _first_note(
    first: ExpandedNote | None,
    around: Sequence[ActiveEntry],
    beside: SharedMessage | None,
    *,
    keeps_blank: bool,
    layout: Layout,
    counter: TokenCounter,
) -> list[Fragment | Verdict]:
    own = [] if first is None else [first.made]
    note = AuthorsNote(content="") if first is None else first.note
    if first is not None and not first.is_due:
        return [*own, *(_verdict(entry, "the author's note is not due") for entry in around)]
    shared = beside or SharedMessage(
        key=NOTE_KEY,
        id=HISTORY_ID,
        role=note.role,
        block="history",
        separator=_SEPARATOR,
        depth=note.injection_depth,
        order=note.order,
    )
    made: list[Fragment | Verdict] = [
        _in_note(entry, number, shared, layout=layout, counter=counter)
        for number, entry in enumerate(in_output_order(around))
    ]
    fragment = own[0] if own and isinstance(own[0], Fragment) else None
    if fragment is None and not (own and keeps_blank):
        return [*own, *made]
    if (
        fragment is not None and fragment.claim.shared is DYNAMIC
    ):  # a note that depends on what is said is in the dynamic message
        return [*made, fragment]
    claim = Claim(
        origin=note_origin(note, 0),
        id=shared.id,
        key=f"{shared.key} {_BETWEEN}",
        role=shared.role,
        depth=shared.depth,
        order=shared.order,
        shared=shared,
        stays=fragment.claim.stays if fragment else "",
    )
    return [
        *made,
        make_fragment(fragment.message.content if fragment else "", claim, counter=counter),
    ]


def _in_note(
    entry: ActiveEntry,
    number: int,
    shared: SharedMessage,
    *,
    layout: Layout,
    counter: TokenCounter,
) -> Fragment | Verdict:
    side = _ABOVE if entry.position == "note_top" else _BELOW
    claim = Claim(
        origin=entry.origin,
        id=shared.id,
        key=f"{shared.key} {side}{number:06}",
        role=shared.role,
        depth=shared.depth,
        order=shared.order,
        shared=shared,
        tier=_tier(entry),
        priority=entry.priority,
        revision=entry.revision,
    )
    return _resolve(entry, claim, layout, counter)


def _resolve(
    entry: ActiveEntry, claim: Claim, layout: Layout, counter: TokenCounter, note: str = ""
) -> Fragment | Verdict:
    """Return an entry's fragment at the place in `claim`, or a verdict that it may not be there."""
    why = entry.depends_on_speech
    settled = restrict_claim(claim, why, layout=layout)
    if settled is None:
        assert why is not None  # `restrict_claim` refuses a claim only for a reason
        return refuse_before_history(entry.origin, why)
    if settled is not claim and why is not None and (why.repeats or entry.constant):
        note = "; ".join(filter(None, (note, why.reason)))
    return make_fragment(
        entry.text, settled, counter=counter, content_tokens=entry.tokens, note=note
    )


def _entry_fragment(
    entry: ActiveEntry,
    components: ComponentSet,
    shared_messages: Mapping[str, SharedMessage],
    layout: Layout,
    counter: TokenCounter,
) -> Fragment | Verdict:
    """Return the fragment of an entry, or the last one if nothing about the entry changed."""
    shared, note = _shared_message(entry, components, shared_messages)
    if shared is not None and (key := _disabled_component(entry, components)):
        return _verdict(entry, f"component {key} is disabled")
    seen = (shared, layout, counter)
    known = entry.memo.get(_FRAGMENT)
    if known is not None and known[0] == seen:
        return known[1]
    at = shared.id if shared else HISTORY_ID
    inside = shared is not None and shared.depth is not None
    order, key = entry.sort_key
    asked = Claim(
        origin=entry.origin,
        id=at,
        key=key,
        role=entry.role,
        depth=shared.depth if shared is not None and inside else entry.depth,
        from_oldest=entry.from_oldest,
        order=order,
        shared=shared,
        tier=_tier(entry),
        priority=entry.priority,
        revision=entry.revision,
        beside=entry.beside,
    )
    made = _resolve(entry, asked, layout, counter, note=note)
    entry.memo[_FRAGMENT] = (seen, made)
    return made


def _own_message(
    fragment: Fragment, *, number: int, identity: str, counter: TokenCounter
) -> Fragment:
    """Return the fragment as a separate message before the dynamic message.

    `number` sorts such messages, lowest first.
    """
    claim = replace(
        fragment.claim,
        id=DYNAMIC.id,
        key=f"{_ABOVE}{number:06}",
        role=DYNAMIC.role,
        shared=None,
        stays=OF_LORE + identity,
    )
    return make_fragment(
        fragment.message.content,
        claim,
        counter=counter,
        content_tokens=fragment.tokens - counter.per_separator,
        note=fragment.note,
        cause=fragment.cause,
    )


def _shared_message(
    entry: ActiveEntry, components: ComponentSet, shared_messages: Mapping[str, SharedMessage]
) -> tuple[SharedMessage | None, str]:
    """Return the shared message that an entry joins, and a note for its verdict.

    The message is None if the entry has a message of its own.
    """
    if entry.depth is not None:
        return None, ""
    shared, note = shared_messages[_JOINTS.get(entry.position, _AFTER)], ""
    anchor = entry.anchor or _ANCHORS.get(entry.position)
    if anchor is not None:
        next_to = components.next_to(anchor.component, side=anchor.side)
        if next_to is not None and next_to.depth is None:
            shared = next_to
        else:
            note = f"there is no component {anchor.component} to be placed next to"
    if (
        entry.keeps_role and shared.role != entry.role
    ):  # the entry becomes a separate message next to the shared one
        shared = replace(
            shared, key=f"{shared.key}:{entry.role}", role=entry.role, name=str(shared)
        )
    return shared, note


def _disabled_component(entry: ActiveEntry, components: ComponentSet) -> str:
    """Return the key of the component next to which an entry belongs if it is switched off.

    If the component is switched on, return "".
    """
    anchor = entry.anchor or _ANCHORS.get(entry.position)
    key = anchor.component if anchor else _JOINTS.get(entry.position, _AFTER)
    return "" if components.is_on(key) else key


def _tier(entry: ActiveEntry) -> Tier:
    return Tier.FLEXIBLE if entry.constant else Tier.MATCHED


def _verdict(entry: ActiveEntry, reason: str, *, kept: bool = False) -> Verdict:
    return Verdict(stage="expand", item=entry.origin, kept=kept, reason=reason)


# Placement in the preset `sillytavern`

# `order_as_sillytavern` copies many entries with another `sort_key`. Calling the constructor with
# the fields in their order is faster than `dataclasses.replace`.
_NAMES: Final = [one.name for one in fields(ActiveEntry) if one.init]
_BEFORE_PLACE: Final = attrgetter(*_NAMES[: _NAMES.index("sort_key")])
_AFTER_PLACE: Final = attrgetter(*_NAMES[_NAMES.index("sort_key") + 1 :])
_ORDER: Final = attrgetter("order")
_LORE_ORDER: Final = 0
_SIGN: Final = 1 << 63
_ALL_BITS: Final = (1 << 64) - 1
# At one depth, SillyTavern sorts texts by role first, in this order, and then by their order.
_ROLE_RANK: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}


def order_as_sillytavern(entries: Sequence[ActiveEntry]) -> list[ActiveEntry]:
    """Return the entries with sort keys that give SillyTavern's order at each place.

    Entries of equal order are reversed. At a depth, texts are sorted by role before order. Before
    the examples and in outlets, the highest order comes first. The sort key of an entry depends
    only on entries of equal order, so a new entry changes few sort keys.
    """
    equals, ordered = Counter(map(_ORDER, entries)), list(entries)
    left = equals.copy()
    for at, entry in enumerate(entries):
        # The position of the entry among those of equal order: `first` counts from the start (0,
        # 1, 2, ...), and `last` counts to the end (..., 3, 2, 1).
        last = left[entry.order]
        left[entry.order] = last - 1
        first = equals[entry.order] - last
        # In SillyTavern, an entry's order sorts it only among entries. So all entries get one order
        # among other texts, and the text in the sort key contains the entry's own order.
        if entry.position in ("examples_before", "outlet"):
            sort_key = (_LORE_ORDER, _sort_key(-entry.order, first))
        elif entry.position in IN_HISTORY:
            role = _ROLE_RANK.get(entry.role, 2)
            sort_key = (DEFAULT_ORDER, f"{role}{_sort_key(entry.order, last)}")
        else:
            sort_key = (_LORE_ORDER, _sort_key(entry.order, last))
        if entry.sort_key != sort_key:
            values = [*_BEFORE_PLACE(entry), sort_key, *_AFTER_PLACE(entry)]
            ordered[at] = ActiveEntry(*values)
    return ordered


@lru_cache(maxsize=1024)
def _sort_key(order: float, number: int) -> str:
    """Return a text that sorts by an order, then by a number.

    The bits of a floating-point number (IEEE 754), read as an unsigned integer, sort like the
    number after the sign bit is inverted. For a negative number all bits are inverted. Adding 0.0
    turns a negative zero into zero.
    """
    (bits,) = struct.unpack(">Q", struct.pack(">d", order + 0.0))
    return f"{bits ^ (_ALL_BITS if bits & _SIGN else _SIGN):016x}{number:06}"
