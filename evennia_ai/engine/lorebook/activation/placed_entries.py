"""Active entries as fragments of the prompt: each at the place it asks for.

Before and after the character, around the examples or next to a component, entries share one
message; with a depth each has its own; around the author's note they share the note's message; in
an outlet they are a value that components may name. In the layout `cache` an entry that depends on
what is said (`evennia_ai.engine.prompt.prefix_rules`) never stands before the history: it joins the
dynamic message. If its book is frozen, it is a message of its own before that one, and stays.

An active entry stands where it asks to, or where its book's grants let it stand. One that asks to
stand where it is spoken of gets the depth of its message and goes the way of everything that has a
depth: the kept history clamps it, order decides at one place, and a tool's result stays with its
call. So it moves with the message, and one whose message was cut away stands at the top of the
history.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.activation.active_books import ActiveBook
from evennia_ai.engine.lorebook.activation.application_order import as_the_application_does
from evennia_ai.engine.lorebook.activation.candidate import ActiveEntry, Candidate
from evennia_ai.engine.lorebook.activation.entry_variables import unsettled_entry
from evennia_ai.engine.lorebook.book import is_moved
from evennia_ai.engine.lorebook.entry import Anchor, Position
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    CONTAINED_PRIORITY,
    HISTORY_ID,
    MAX_DEPTH,
    Grants,
)
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.fragments import (
    DYNAMIC,
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
from evennia_ai.engine.prompt.notes import AuthorsNote, ExpandedNote, message_next_to, note_origin
from evennia_ai.engine.prompt.prefix_rules import refuse_before_history, restrict_claim
from evennia_ai.engine.prompt.templates.value_names import OUTLET
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict

# The fragment of an entry, and what of the prompt it was made for.
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
# Sorts the texts above the note before it and those below it after it.
_ABOVE, _BELOW = "!", "~"


class _Placed(NamedTuple):
    """Active entries with their places; where the same are active again, they stand there again."""

    rules: str
    active: list[Candidate]
    entries: tuple[ActiveEntry, ...]
    moving: list[int]
    """Which of them stand beside a message."""


_PLACED: Final = Slot[_Placed]("placed")


def placed(
    active: list[Candidate],
    books: Sequence[ActiveBook],
    history: History,
    *,
    rules: ActivationRules,
) -> tuple[ActiveEntry, ...]:
    """The active entries with their places, in the order of their activation."""
    if not active:
        return ()
    memo = books[0].window.memo
    known = memo.get(_PLACED)
    if known is None or known.rules != rules.rules or known.active != active:
        entries = [one.active or _contained(_made(one), one.book.grants) for one in active]
        if PRESET_FLAGS[rules.rules].ties_reversed:
            entries = as_the_application_does(entries)
        for one, entry in zip(active, entries, strict=True):
            one.active = entry
        moving = [at for at, one in enumerate(active) if one.entry.mention is not None]
        known = memo[_PLACED] = _Placed(rules.rules, active, tuple(entries), moving)
    return _beside_messages(known, books, history) if known.moving else known.entries


def _beside_messages(
    placed: _Placed, books: Sequence[ActiveBook], history: History
) -> tuple[ActiveEntry, ...]:
    """The entries where those stand beside their message that ask to."""
    entries = list(placed.entries)
    for at in placed.moving:
        one = placed.active[at]
        depth, beside = books[one.rank].spot_of(one.entry, history)
        entry = one.active or entries[at]
        if (entry.depth, entry.beside) != (depth, beside):
            entry = replace(entry, depth=depth, beside=beside)
        one.active = entries[at] = entry
    return tuple(entries)


def _contained(entry: ActiveEntry, grants: Grants) -> ActiveEntry:
    """The entry where its book's grants let it stand: the same one where they let it be."""
    if grants == ALL_GRANTS:
        return entry
    if is_moved(entry.position, grants):
        entry = replace(
            entry, position="depth", depth=MAX_DEPTH, from_oldest=False, outlet="", anchor=None
        )
    if "lore_budget" not in grants:
        entry = replace(entry, priority=min(entry.priority, CONTAINED_PRIORITY))
    return entry if "roles" in grants else replace(entry, role="user", keeps_role=True)


def _made(one: Candidate) -> ActiveEntry:
    """The entry where it asks to stand."""
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
        stands=(entry.order, f"{one.rank:04}:{entry.index:06}"),
        priority=entry.priority,
        constant=entry.constant,
        revision=book.revision,
        unsettled=unsettled_entry(entry),
        identity=one.identity,
        frozen=book.mode == "frozen",
    )


def in_output_order(entries: Iterable[ActiveEntry]) -> list[ActiveEntry]:
    """The entries as they come out inside one place, top to bottom."""
    return sorted(entries, key=lambda entry: entry.stands)


def outlets_of(entries: Iterable[ActiveEntry]) -> dict[str, list[ActiveEntry]]:
    """The entries of each outlet, in the order they come out."""
    outlets: dict[str, list[ActiveEntry]] = {}
    for entry in in_output_order(entries):
        if entry.position == "outlet":
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
    """The entries that stand by themselves: not those around the note, nor those of outlets.

    `shared_messages` are the messages before and after the character, by the keys of their
    components.
    """
    standing = [e for e in entries if e.position not in _ELSEWHERE and e.text.strip()]
    made = [_fragment(entry, components, shared_messages, layout, counter) for entry in standing]
    if not any(entry.frozen for entry in standing):
        return made
    places = {entry.origin: at for at, entry in enumerate(in_output_order(standing))}
    return [
        _staying(fragment, number=places[entry.origin], identity=entry.identity, counter=counter)
        if entry.frozen and isinstance(fragment, Fragment) and fragment.claim.shared is DYNAMIC
        else fragment
        for entry, fragment in zip(standing, made, strict=True)
    ]


def outlet_values(entries: Sequence[ActiveEntry]) -> dict[str, str]:
    """What components that name an outlet get: its entries' texts, joined."""
    return {
        OUTLET + name: _SEPARATOR.join(entry.text for entry in members)
        for name, members in outlets_of(entries).items()
    }


def outlet_verdicts(entries: Iterable[ActiveEntry], *, components: ComponentSet) -> list[Verdict]:
    """Whether a component names the outlet of each entry that has one."""
    made: list[Verdict] = []
    for entry in entries:
        if entry.position == "outlet":
            readers = components.keys_reading(OUTLET + entry.outlet)
            where = f"in the outlet '{entry.outlet}' of component {', '.join(readers)}"
            outlet = f"'{entry.outlet}' ({{{{outlet::{entry.outlet}}}}})"
            why = where if readers else f"no component names the outlet {outlet}"
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
    """The notes, the first with the entries above and below it, all in one message.

    A note that is not due takes them along; around an empty one a blank line stays where
    `keeps_blank`. Without a note they stand where one would.
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
        key=NOTE_KEY, id=HISTORY_ID, role=note.role, block="history", separator=_SEPARATOR
    )
    made: list[Fragment | Verdict] = [
        _in_note(entry, number, shared, note, layout=layout, counter=counter)
        for number, entry in enumerate(in_output_order(around))
    ]
    fragment = own[0] if own and isinstance(own[0], Fragment) else None
    if fragment is None and not (own and keeps_blank):
        return [*own, *made]
    if (
        fragment is not None and fragment.claim.shared is DYNAMIC
    ):  # the note depends on what is said
        return [*made, fragment]
    claim = Claim(
        origin=note_origin(note, 0),
        id=shared.id,
        key=NOTE_KEY,
        role=note.role,
        depth=_note_depth(note, shared),
        order=note.order,
        shared=shared,
        stays=fragment.claim.stays if fragment else "",
    )
    return [
        *made,
        make_fragment(fragment.message.content if fragment else "", claim, counter=counter),
    ]


def _note_depth(note: AuthorsNote, shared: SharedMessage) -> int | None:
    """The depth of the message of a note, None where that stands beside a component."""
    return note.injection_depth if shared.block == "history" else None


def _in_note(
    entry: ActiveEntry,
    number: int,
    shared: SharedMessage,
    note: AuthorsNote,
    *,
    layout: Layout,
    counter: TokenCounter,
) -> Fragment | Verdict:
    side = _ABOVE if entry.position == "note_top" else _BELOW
    claim = Claim(
        origin=entry.origin,
        id=shared.id,
        key=f"{side}{number:06}",
        role=note.role,
        depth=_note_depth(note, shared),
        order=note.order,
        shared=shared,
        tier=_tier(entry),
        priority=entry.priority,
        revision=entry.revision,
    )
    return _settled(entry, claim, layout, counter)


def _settled(
    entry: ActiveEntry, claim: Claim, layout: Layout, counter: TokenCounter, note: str = ""
) -> Fragment | Verdict:
    """The entry's fragment where it may be placed, or the verdict that says why it is left out."""
    why = entry.unsettled
    settled = restrict_claim(claim, why, layout=layout)
    if settled is None:
        assert why is not None  # a settled text has the place that it asks for
        return refuse_before_history(entry.origin, why)
    if settled is not claim and why is not None and why.repeats:
        note = "; ".join(filter(None, (note, why.reason)))
    return make_fragment(
        entry.text, settled, counter=counter, content_tokens=entry.tokens, note=note
    )


def _fragment(
    entry: ActiveEntry,
    components: ComponentSet,
    shared_messages: Mapping[str, SharedMessage],
    layout: Layout,
    counter: TokenCounter,
) -> Fragment | Verdict:
    """The entry's fragment: the same object while nothing about it changed."""
    shared, note = _shared_of(entry, components, shared_messages)
    if shared is not None and (key := _switched_off(entry, components)):
        return _verdict(entry, f"component {key} is disabled")
    seen = (shared, layout, counter)
    known = entry.memo.get(_FRAGMENT)
    if known is not None and known[0] == seen:
        return known[1]
    at = shared.id if shared else HISTORY_ID
    inside = shared is not None and shared.depth is not None
    order, key = entry.stands
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
    made = _settled(entry, asked, layout, counter, note=note)
    entry.memo[_FRAGMENT] = (seen, made)
    return made


def _staying(fragment: Fragment, *, number: int, identity: str, counter: TokenCounter) -> Fragment:
    """The fragment as a message of its own, before the dynamic one: the `number`-th that stays."""
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


def _shared_of(
    entry: ActiveEntry, components: ComponentSet, shared_messages: Mapping[str, SharedMessage]
) -> tuple[SharedMessage | None, str]:
    """The message the entry shares, None for one of its own, and what is to be said about it."""
    if entry.depth is not None:
        return None, ""
    shared, note = _asked_for(entry, components, shared_messages)
    if entry.keeps_role and shared.role != entry.role:  # beside that message, in one like it
        shared = replace(
            shared, key=f"{shared.key}:{entry.role}", role=entry.role, name=str(shared)
        )
    return shared, note


def _asked_for(
    entry: ActiveEntry, components: ComponentSet, shared_messages: Mapping[str, SharedMessage]
) -> tuple[SharedMessage, str]:
    """The message at the place the entry asks for, and what is to be said where it has none."""
    usual = shared_messages[_JOINTS.get(entry.position, _AFTER)]
    anchor = entry.anchor or _ANCHORS.get(entry.position)
    if anchor is None:
        return usual, ""
    shared = components.next_to(anchor.component, side=anchor.side)
    if shared is not None:
        return shared, ""
    return usual, f"there is no component {anchor.component} to stand next to"


def _switched_off(entry: ActiveEntry, components: ComponentSet) -> str:
    """The component whose place the entry takes, where that is disabled."""
    anchor = entry.anchor or _ANCHORS.get(entry.position)
    key = anchor.component if anchor else _JOINTS.get(entry.position, _AFTER)
    return "" if components.is_on(key) else key


def _tier(entry: ActiveEntry) -> Tier:
    return Tier.FLEXIBLE if entry.constant else Tier.MATCHED


def _verdict(entry: ActiveEntry, reason: str, *, kept: bool = False) -> Verdict:
    return Verdict(stage="expand", item=entry.origin, kept=kept, reason=reason)
