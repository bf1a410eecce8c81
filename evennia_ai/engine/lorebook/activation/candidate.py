"""Candidates: entries that their conditions let through in one pass; why entries are active or not.

The engine keeps a reason as what is to be said and of what; the words are put together when
somebody reads them, because most are never read. What else decides says its reason where it does:
`judging` (switched off, constant, without keys), `groups`, `lore_budget`, `passes`, and
`lorebook.conditions` for the game's facts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import Anchor, Logic, LoreEntry, Position
from evennia_ai.engine.lorebook.scan.hit_cache import EVENT, FED, NOTE, SOMEWHERE, SOURCE, FoundKey
from evennia_ai.engine.lorebook.scan.regex.pattern import Pattern
from evennia_ai.engine.prompt.components import Grant
from evennia_ai.engine.prompt.memo import Memo, Slot, typed_frozen_row
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.pieces import Beside
from evennia_ai.engine.prompt.settled import Unsettled
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Called

_SHOWN: Final = 6
_SHOWN_LENGTH: Final = 60
_SHOWN_TROUBLES: Final = 3


class EntryReason(NamedTuple):
    """`words` called with `facts` says it; two that say the same are equal."""

    words: Callable[..., str]
    facts: tuple[object, ...] = ()

    def __str__(self) -> str:
        return self.words(*self.facts)

    def calling(self, called: Called) -> "EntryReason":
        """The same with the messages called as `called` says."""
        facts = (_called(fact, called) for fact in self.facts)
        return EntryReason(self.words, tuple(facts))


def _called(fact: object, called: Called) -> object:
    in_message = isinstance(fact, FoundKey) and fact.place >= 0
    return fact._replace(of=called(fact.place)) if in_message else fact  # type: ignore[attr-defined]


def plain(text: str) -> EntryReason:
    """A reason that is a constant text."""
    return EntryReason(str, (text,))


def key_found(text: str, found: FoundKey) -> str:
    """Which key was found and where."""
    place, (start, end), of = found
    if place >= 0 <= start:  # by far the most
        return f"key '{text[:_SHOWN_LENGTH]}' in {of or f'message {place + 1}'} at {start}-{end}"
    return f"key '{text[:_SHOWN_LENGTH]}' {place_of(found)}"


def key_and_logic(text: str, found: FoundKey, logic: Logic, secondary: Sequence[str]) -> str:
    """The same where secondary keys agree."""
    return f"{key_found(text, found)}, and {_NEEDS[logic]} {quoted(secondary)}"


def logic_unmet(
    text: str,
    found: FoundKey,
    logic: Logic,
    secondary: Sequence[str],
    shown: Sequence[str],
) -> str:
    """A key was found and the secondary keys disagree; `shown` are those that decided."""
    state = "missing" if logic == "all" else "there"
    wish = f"wants {_NEEDS[logic]} {quoted(secondary)}"
    return f"{key_found(text, found)}, but {wish}: {quoted(shown) or 'none'} {state}"


def no_key(depth: int, refused: str, patterns: Sequence[Pattern]) -> str:
    """None of the keys was found in that many messages; `refused` are those that cannot be."""
    told = f"no key in the newest {'message' if depth == 1 else f'{depth} messages'}"
    troubles = [pattern.trouble for pattern in patterns if pattern.trouble][:_SHOWN_TROUBLES]
    return "; ".join(filter(None, (told, refused, *troubles)))


def given_up(pattern: str, where: FoundKey, why: str) -> str:
    """A pattern was not looked for to the end in one text; in the next one it is again."""
    return f"pattern '{pattern[:40]}' was given up {_text_of(where)}: {why}"


def excluded(text: str, found: FoundKey) -> str:
    """A key was found that keeps the entry silent."""
    return f"@@exclude_keys: '{text[:60]}' {place_of(found)}"


def only_in_movement(found: FoundKey) -> str:
    """A key was found where the entry does not hear it."""
    told = "that tells who comes and goes, which wakes only entries that ask for movement"
    return f"a key {place_of(found)}, but {told}"


def too_early(count: float, needed: int, clock: str) -> str:
    """The delay of an entry is not over."""
    return f"delay: sleeps until {needed} {clock}, {count:g} so far"


def resting(end: float, now: float, clock: str, of: str = "") -> str:
    """A cooldown is not over."""
    whose = f" of group '{of}'" if of else ""
    return f"cooldown{whose}: rests for {_more(end - now, clock)}"


def staying(end: float, now: float, clock: str) -> str:
    """A sticky entry stays."""
    return f"sticky: was woken before and stays for {_more(end - now, clock)}, this one counted"


def _more(left: float, clock: str) -> str:
    return f"1 more {clock.removesuffix('s')}" if left == 1 else f"{left:g} more {clock}"


def rolled(roll: float, chance: float) -> str:
    """The roll of an entry and its odds."""
    return f"rolled {roll * 100:.1f} of a chance of {chance:g} %"


def in_pass(number: int, kind: str) -> str:
    """In which pass of the scan."""
    return f"pass {number} ({kind})"


def place_of(found: FoundKey) -> str:
    """Where a key was found."""
    place, (start, end), of = found
    if place in (NOTE, SOMEWHERE):
        return _text_of(found)
    if start < 0 and place not in (FED, SOURCE):
        return f"in the name of {of or message_called(place)}"
    return f"{_text_of(found)} at {start}-{end}"


def _text_of(found: FoundKey) -> str:
    """In which text something was found."""
    if found.place == NOTE:
        return "in a note"
    if found.place == SOMEWHERE:
        return "in the scanned text"
    if found.place == FED:
        return f"in the text of {found.of}"
    if found.place == SOURCE:
        return f"in {_SOURCES[found.of]}"
    return f"in {found.of or message_called(found.place)}"


def message_called(place: int) -> str:
    """What the message at this place is called."""
    return "the event" if place == EVENT else f"message {place + 1}"


def quoted(texts: Sequence[str]) -> str:
    """Keys for a reason, the first few of them."""
    few = ", ".join(f"'{text[:_SHOWN_LENGTH]}'" for text in texts[:_SHOWN])
    return few if len(texts) <= _SHOWN else f"{few} and {len(texts) - _SHOWN} more"


def times(replies: int) -> str:
    """How often the character has spoken."""
    return "1 reply" if replies == 1 else f"{replies} replies"


_NEEDS: Final = {"any": "one of", "all": "all of", "not_any": "none of", "not_all": "not all of"}
_SOURCES: Final = {
    "persona": "the persona",
    "char_description": "the character's description",
    "char_personality": "the character's personality",
    "char_depth_prompt": "the character's depth prompt",
    "scenario": "the scenario",
    "creator_notes": "the creator's notes",
    "room": "the description of the room",
}


@typed_frozen_row
class ActiveEntry:
    """An entry that goes into the prompt: the same object while nothing about it changed."""

    origin: str
    label: str
    """`book#uid`."""
    book: str
    uid: str
    name: str
    text: str
    """Its decorators cut, its macros expanded."""
    tokens: int
    position: Position
    depth: int | None
    """As in `LoreEntry`; of one at a mention that of its message."""
    from_oldest: bool
    outlet: str
    anchor: Anchor | None
    role: Role
    order: float
    """The entry's own."""
    stands: tuple[float, str]
    """Sorts it among the texts of one place: order, then key."""
    priority: float
    constant: bool
    revision: int
    unsettled: Unsettled | None = None
    """Why its text depends on what is said, if it does."""
    identity: str = ""
    """What it is remembered by."""
    frozen: bool = False
    """Whether its book is."""
    keeps_role: bool = False
    """It never joins a message of another role."""
    beside: Beside | None = None
    """Which message that is, of one at a mention."""
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)


@dataclass(slots=True)
class Judgement:
    """Whether an entry is a candidate and why; `found` is the key that woke it."""

    is_candidate: bool
    reason: EntryReason
    found: FoundKey | None = None
    sticky: bool = False
    _cause: str = field(default="", compare=False)

    @property
    def cause(self) -> str:
        """The reason in words."""
        if not self._cause:
            self._cause = str(self.reason)
        return self._cause


# By the text of a key what was last said of the entries that it woke.
JUDGED: Final = Slot[dict[str, Judgement]]("judged")


# What admitting an entry did to the budget: tokens left before and after. A plain tuple, because a
# newcomer changes those of all entries behind it.
Charge = tuple[int, int]


@dataclass(slots=True, eq=False)
class Ruling:
    """What became of an entry once it was judged; with nothing to say it was not even a candidate.

    `details` are what is to be said beside why it was woken: of the entry and the run, not of
    messages. `charge` is what it cost where it was admitted.
    """

    kept: bool
    details: tuple[object, ...] = ()
    tokens: int = 0
    charge: Charge | None = None

    def said_after(self, cause: str) -> str:
        """The cause of the entry and all of this in words, each behind a semicolon."""
        told = "; ".join([cause, *map(str, self.details)]) if self.details else cause
        if self.charge is None:
            return told
        before, after = self.charge
        return f"{told}; budget {before} -> {after} tokens"


NOT_WOKEN: Final = Ruling(False)


@dataclass(slots=True, eq=False, kw_only=True)
class Candidate:
    """An entry that its conditions let through, and its text.

    Where nothing but its text can change, it is the same object turn after turn, with its place in
    the prompt; what woke it is told by its judgement.
    """

    number: int
    """One for each entry of all books."""
    place: tuple[float, ...]
    """Its own in the processing order."""
    tier: int
    yields: float
    """Who is offered room first: the lowest tier, and in it who yields least."""
    rank: int
    """The place of its book among the books."""
    book: Lorebook
    entry: LoreEntry
    label: str
    """What it is called."""
    identity: str
    """What it is remembered by."""
    sticky: bool
    """Whether it stays from before."""
    rests: bool
    """Whether its cooldown runs."""
    text: str
    searched: str
    """What of it is searched in recursion: its text, and the keys it hides there."""
    tokens: int
    work: int
    """What filling its macros in takes, 0 without any."""
    counter: TokenCounter
    lacking: tuple[Grant, ...]
    """The grants that its book would need for its place and role."""
    is_lasting: bool
    """Whether nothing but its text can change."""
    is_constant_text: bool
    is_steady: bool
    """Whether it depends on neither chance nor others of a group."""
    is_remembered: bool
    """Whether later turns ask whether it was active."""
    active: ActiveEntry | None = None
    """As it last went into a prompt."""

    def is_for(self, book: Lorebook, *, rank: int, counter: TokenCounter, sticky: bool) -> bool:
        """Whether it is what the entry would be made now, but for its text."""
        return (
            self.is_lasting
            and self.book is book
            and self.rank == rank
            and self.counter is counter
            and self.sticky == sticky
        )


PLACE: Final = attrgetter("place")
# By the index of an entry the candidate it last was.
CANDIDATES: Final = Slot[dict[int, Candidate]]("candidates")
