"""One entry of a lorebook, as the value that activation reads.

Its decorators are already applied. An entry that asks for something impossible has the reason in
`refused`: it is never active, and its verdict says why. To add a field to entries, start with the
table in `formats.lorebooks.entry_fields`.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from evennia_ai.engine.lorebook.conditions import Condition
from evennia_ai.engine.lorebook.decorators import Decorator
from evennia_ai.engine.lorebook.rules import ClockName
from evennia_ai.engine.prompt.memo import typed_frozen_thing
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.templates.template import Template

Position = Literal[
    "before",
    "after",
    "note_top",
    "note_bottom",
    "depth",
    "examples_before",
    "examples_after",
    "outlet",
    "anchor",
    "at_mention",
]
AT_MENTION: Final = "at_mention"
# The positions inside the history; the kept history clamps their depth.
IN_HISTORY: Final[tuple[Position, ...]] = ("depth", AT_MENTION)
# The most characters of a key; a longer one is refused.
MAX_KEY: Final = 1000
Side = Literal["before", "after"]
SIDES: Final[tuple[Side, ...]] = get_args(Side)
# Which message counts if several have a key.
Mentioning = Literal["newest", "oldest"]
MENTIONINGS: Final[tuple[Mentioning, ...]] = get_args(Mentioning)
# How secondary keys decide once a key was found (SillyTavern's numbers 0 to 3, in this order).
Logic = Literal["any", "not_all", "not_any", "all"]
# Which keys are regular expressions: none, those written as /pattern/flags, or all.
Patterns = Literal["none", "by_form", "all"]
# Texts other than the conversation that are scanned for entries that ask for them.
SourceName = Literal[
    "persona",
    "char_description",
    "char_personality",
    "char_depth_prompt",
    "scenario",
    "creator_notes",
    "room",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Conditions of an entry other than its keys (Card V3 decorators); None is no condition.

    Each line of `additional` must have one key in the scanned text; no key of `excluded` may be
    there. An entry that was active before is active in any case with `kept_after_match`, and never
    again with `never_after_match`.
    """

    forced: bool = False
    forbidden: bool = False
    greeting: int | None = None
    replies_from: int | None = None
    every_replies: int | None = None
    additional: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[str, ...] = ()
    user_icon: str | None = None
    kept_after_match: bool = False
    never_after_match: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recursion:
    """The part of an entry in recursion.

    If `excluded`, texts of other entries do not activate it. If `prevented`, its own text activates
    no other entry. With a `delay_level` above 0 it is silent until recursion reaches that level.
    """

    excluded: bool = False
    prevented: bool = False
    delay_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The timers of an entry, 0 for none.

    `sticky`: for how long an active entry stays active, from the count in which it was activated.
    `cooldown`: for how long it is silent after that. `delay`: before which count it is silent. All
    count on `clock`; None means the clock of the rules.
    """

    sticky: int = 0
    cooldown: int = 0
    delay: int = 0
    clock: ClockName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The inclusion groups of an entry; at most one member of each is active.

    `written` is the field that has the names. A `preferred` member wins without a roll. A `scored`
    one loses to members with more found keys; None leaves that to the rules. A `cooldown` above 0
    silences the whole group after this entry was active.
    """

    names: tuple[str, ...] = ()
    written: str = ""
    weight: float = 100
    preferred: bool = False
    scored: bool | None = None
    cooldown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A place next to the component of this key."""

    component: str
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A place next to a message with a key: before or after it, the newest or the oldest one."""

    side: Side = "before"
    message: Mentioning = "newest"


NO_GATES: Final = Gates()
NO_RECURSION: Final = Recursion()
NO_TIMING: Final = Timing()
NO_GROUPS: Final = Grouping()


@typed_frozen_thing
class LoreEntry:
    """One entry of a book; None for a flag or a depth means that the book or the rules decide."""

    uid: str
    index: int
    """Its position in the book."""
    origin: str
    """Its name in verdicts."""
    name: str = ""
    keys: tuple[str, ...] = ()
    """The keys as written: with macros, blanks and repetitions."""
    secondary_keys: tuple[str, ...] = ()
    selective: bool = True
    """True if the secondary keys count, as `logic` says."""
    logic: Logic = "any"
    patterns: Patterns = "none"
    enabled: bool = True
    constant: bool = False
    template: Template
    position: Position = "after"
    depth: int | None = None
    """Messages from the newest, or the oldest; None unless the position is "depth"."""
    asked_depth: int | None = None
    """The depth as written, if it is deeper than any history."""
    from_oldest: bool = False
    outlet: str = ""
    """The name of the position "outlet"."""
    anchor: Anchor | None = None
    """The component that it is next to; also for "before" and "after" the description only."""
    mention: Mention | None = None
    """The message that it is next to, with the position "at_mention"."""
    role: Role = "system"
    order: float = 100
    """Its order among texts of the same place."""
    priority: float = 100
    """Entries with a high priority are offered room in the budget first."""
    first_to_go: bool = False
    """True if it is left out before entries of any priority (`@@ignore_on_max_context`)."""
    ignore_budget: bool = False
    case_sensitive: bool | None = None
    match_whole_words: bool | None = None
    scan_depth: int | None = None
    sources: frozenset[SourceName] = frozenset()
    hears_movement: bool = False
    """True if its keys are also searched in messages about somebody who comes or goes."""
    gates: Gates = NO_GATES
    recursion: Recursion = NO_RECURSION
    timing: Timing = NO_TIMING
    grouping: Grouping = NO_GROUPS
    chance: float = 100
    """In percent."""
    conditions: tuple[Condition, ...] = ()
    decorators: tuple[Decorator, ...] = ()
    refused: str | None = None
    """Why it can never be active, if it asks for something impossible."""

    @property
    def is_usable(self) -> bool:
        """True if nothing in the entry itself forbids that it is ever active."""
        return self.enabled and self.refused is None

    @property
    def key_lists(self) -> tuple[tuple[str, ...], ...]:
        """All its lists of keys, those of its decorators too."""
        return (self.keys, self.secondary_keys, *self.gates.additional, self.gates.excluded)
