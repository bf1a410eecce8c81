"""Candidates: entries that their conditions let through in one pass, and how they are placed.

An active entry stands where it asks to, or where its book's grants let it stand. One that asks to
stand where it is spoken of gets the depth of its message and goes the way of everything that has a
depth: the kept history clamps it, order decides at one place, and a tool's result stays with its
call. So it moves with the message, and one whose message was cut away stands at the top of the
history.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from evennia_ai.lorebook.activation.judging import Judgement
from evennia_ai.lorebook.activation.places import CONTAINED_PRIORITY, ActiveEntry, is_moved
from evennia_ai.lorebook.book import Lorebook
from evennia_ai.lorebook.entry import IN_HISTORY, LoreEntry, Mention
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scan.window import EVENT, FED, Window
from evennia_ai.prompt.components import ALL_GRANTS, DEFAULT_ORDER, MAX_DEPTH, Grants
from evennia_ai.prompt.history import History
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.pieces import Beside
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Verdict


@dataclass(slots=True, eq=False, kw_only=True)
class Candidate:
    """An entry that its conditions let through, why, and its text; as text it reads as its cause.

    Where nothing but its judgement and its text can change, it is the same object turn after turn,
    with its cause, its place in the prompt and its last verdict.
    """

    place: tuple[float, ...]
    """Its own in the processing order."""
    survival: tuple[object, ...]
    """Sorts by who is offered room first."""
    rank: int
    """The place of its book among the books."""
    book: Lorebook
    entry: LoreEntry
    label: str
    """What it is called."""
    identity: str
    """What it is remembered by."""
    judgement: Judgement
    rests: bool
    """Whether its cooldown runs."""
    text: str
    is_constant_text: bool
    tokens: int
    counter: TokenCounter
    speaker: str | None
    """Who woke it; None where it was nobody in particular."""
    is_lasting: bool
    """Whether nothing but its judgement and its text can change."""
    cause: str = ""
    active: ActiveEntry | None = None
    told: tuple[object, Verdict] | None = None

    def __str__(self) -> str:
        if not self.cause:
            self.cause = str(self.judgement.reason)
        return self.cause

    def is_of(self, judgement: Judgement, rank: int, counter: TokenCounter) -> bool:
        """Whether it is what would be made anew, its text aside."""
        same = self.judgement is judgement and self.counter is counter
        return same and self.is_lasting and self.rank == rank

    @property
    def is_fed(self) -> bool:
        """Whether the text of another entry woke it."""
        found = self.judgement.found
        return found is not None and found.place == FED

    @property
    def searched(self) -> str:
        """What of it is searched in recursion: its text, and the keys it hides there."""
        hidden = self.entry.template.hidden_keys
        return "\n".join((self.text, *hidden)) if hidden else self.text

    @property
    def sticky(self) -> bool:
        """Whether it stays from before."""
        return self.judgement.sticky

    @property
    def ref(self) -> tuple[int, int]:
        """The rank of its book and its index in it."""
        return self.rank, self.entry.index


# By the index of an entry the candidate it last was.
CANDIDATES: Final = Slot[dict[int, Candidate]]("candidates")


_BY_NOTHING: Final = Beside(None, "after the newest message, for none has a key of it")
_BY_EVENT: Final = Beside(None, "after the newest message, for the event has a key of it")


class Spot(NamedTuple):
    """A place in the history: its depth from the newest message, and what it is beside."""

    depth: int
    beside: Beside


def spot_of(
    mention: Mention,
    keys: Collection[int],
    window: Window,
    history: History,
    *,
    depth: int,
    movement: bool,
) -> Spot:
    """Where an entry of these keys stands that sees the newest `depth` messages.

    An entry with a key in the event stands before that, after the newest message; so does one that
    no message has a key of, because something else woke it. `movement` says whether the entry hears
    who comes and goes.
    """
    mentions = window.mentions(keys, movement=movement)
    place = _place_of(mention, mentions, depth=depth)
    if place is None:
        return Spot(0, _BY_NOTHING)
    if place == EVENT:
        return Spot(0, _BY_EVENT)
    first = place if mention.side == "before" else place + 1
    told = f"right {mention.side} {{}}, which has a key of it"
    return Spot(history.counted(first), Beside(place, told))


def mention_in_words(mention: Mention) -> str:
    """The place as an author reads it."""
    return f"right {mention.side} the {mention.message} message with its key"


def _place_of(mention: Mention, mentions: Iterable[tuple[int, int]], *, depth: int) -> int | None:
    """The newest message with one of the keys, or the oldest of those that the entry sees."""
    found: int | None = None
    for age, place in mentions:
        if found is not None and age >= depth:
            break
        found = place
        if mention.message == "newest":
            break
    return found


# Roles as SillyTavern puts them at one depth, top to bottom; there order does not cross roles.
_ROLE_RANK: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}


def placed(
    active: Sequence[Candidate], *, rules: ActivationRules, spot: Callable[[Candidate], Spot]
) -> tuple[ActiveEntry, ...]:
    """The active entries with their places, in the order of their activation.

    `spot` tells where one stands that asks for the message that has its key.
    """
    if rules.flags.ties_reversed:
        return _as_the_application_does([_active(one, spot) for one in active])
    return tuple([_active(one, spot) for one in active])


def _active(one: Candidate, spot: Callable[[Candidate], Spot]) -> ActiveEntry:
    """The entry for the prompt: the same object while nothing about it changed."""
    if one.active is None:
        one.active = _contained(_made(one), one.book.grants)
    if one.entry.mention is None:
        return one.active
    depth, beside = spot(one)
    if (one.active.depth, one.active.beside) != (depth, beside):
        one.active = replace(one.active, depth=depth, beside=beside)
    return one.active


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
        cause=str(one),
        identity=one.identity,
        frozen=book.mode == "frozen",
    )


def _as_the_application_does(entries: Sequence[ActiveEntry]) -> tuple[ActiveEntry, ...]:
    """The places SillyTavern gives: equals in reverse, roles before order at one depth.

    Texts before the examples and in outlets come out with the highest order first.
    """
    by_order = sorted(entries, key=lambda entry: -entry.order)  # stable: as they were activated
    last = len(by_order)
    stands = {
        id(entry): _application_place(entry, number, last - number)
        for number, entry in enumerate(by_order)
    }
    return tuple(replace(entry, stands=stands[id(entry)]) for entry in entries)


def _application_place(entry: ActiveEntry, falling: int, rising: int) -> tuple[float, str]:
    if entry.position in ("examples_before", "outlet"):
        return (falling, "")
    if entry.position in IN_HISTORY:
        return (DEFAULT_ORDER, f"{_ROLE_RANK.get(entry.role, 2)}{rising:06}")
    return (rising, "")
