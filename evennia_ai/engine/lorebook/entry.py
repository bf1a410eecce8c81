"""One entry of a lorebook, as the value that activation reads, with its decorators applied.

If an entry asks for something impossible, `refused` has the reason. Then the entry is never active,
and its verdict gives that reason.

To add a field to entries, start with the table in `formats.lorebooks.entry_fields`. A field that
can keep an entry inactive also needs a check in `activation.judging` and in
`scan.key_index.keys_decide`.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from evennia_ai.engine.lorebook.decorators import Decorator
from evennia_ai.engine.lorebook.rules import ClockName
from evennia_ai.engine.prompt.conditions import Condition
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
# The positions inside the chat history. A depth greater than the kept part of the history places
# the entry at the top of that part.
IN_HISTORY: Final[tuple[Position, ...]] = ("depth", AT_MENTION)
# The maximum length of a key in characters. A longer key can never be found.
MAX_KEY: Final = 1000
Side = Literal["before", "after"]
SIDES: Final[tuple[Side, ...]] = get_args(Side)
# Next to which message an entry is placed if several messages contain one of its keys.
Mentioning = Literal["newest", "oldest"]
MENTIONINGS: Final[tuple[Mentioning, ...]] = get_args(Mentioning)
# Which secondary keys must be found after a primary key was found. The order is that of the numbers
# 0 to 3 in SillyTavern's files.
Logic = Literal["any", "not_all", "not_any", "all"]
# Which keys are regular expressions: no keys, keys written as /pattern/flags, or all keys.
Patterns = Literal["none", "by_form", "all"]
# The texts outside the conversation in which an entry may ask to search for its keys, in the order
# in which they are searched.
SourceName = Literal[
    "persona",
    "char_description",
    "char_personality",
    "char_depth_prompt",
    "scenario",
    "creator_notes",
    "room",
]
SOURCE_NAMES: Final[tuple[SourceName, ...]] = get_args(SourceName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Conditions that Card V3 decorators of an entry set. None means that there is no condition.

    At least one key of each line in `additional` must be found, and no key of `excluded`. An entry
    that was active once is always active with `kept_after_match`, and never again with
    `never_after_match`.
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
    """The settings of an entry for recursion: the search for keys in texts of active entries.

    If `excluded`, texts of other entries do not activate the entry. If `prevented`, its own text
    activates no other entry. With a `delay_level` above 0, the entry stays inactive until recursion
    reaches that level.
    """

    excluded: bool = False
    prevented: bool = False
    delay_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The timers of an entry; 0 means no timer.

    `sticky` is how long an entry stays active after it was activated. `cooldown` is how long it is
    inactive after that. Until the clock reaches `delay`, the entry is inactive. `clock` names the
    unit of all three; None means the unit in the rules.
    """

    sticky: int = 0
    cooldown: int = 0
    delay: int = 0
    clock: ClockName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The inclusion groups of an entry. At most one member of each group is active.

    `written` is the text in which the author named the groups. A `preferred` entry wins without a
    roll. A `scored` entry loses to members with more found keys; None leaves this to the rules. A
    `cooldown` above 0 keeps the whole group inactive for a while after this entry was active.
    """

    names: tuple[str, ...] = ()
    written: str = ""
    weight: float = 100
    preferred: bool = False
    scored: bool | None = None
    cooldown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The place of an entry next to a component of the prompt, given by the component's key."""

    component: str
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """The place of an entry next to the newest or oldest message that contains one of its keys."""

    side: Side = "before"
    message: Mentioning = "newest"


NO_GATES: Final = Gates()
NO_RECURSION: Final = Recursion()
NO_TIMING: Final = Timing()
NO_GROUPS: Final = Grouping()


@typed_frozen_thing
class LoreEntry:
    """One entry of a lorebook.

    If a flag or a depth is None, the book or the rules decide.
    """

    uid: str
    index: int
    """The position of the entry in its book."""
    origin: str
    """The id of the entry in verdicts: "lore:", then its label `book#uid`."""
    name: str = ""
    keys: tuple[str, ...] = ()
    """The keys as the author wrote them, with macros, blanks and repetitions."""
    secondary_keys: tuple[str, ...] = ()
    selective: bool = True
    """True if the secondary keys must meet `logic`; False if secondary keys are ignored."""
    logic: Logic = "any"
    patterns: Patterns = "none"
    enabled: bool = True
    constant: bool = False
    template: Template
    position: Position = "after"
    depth: int | None = None
    """How many messages come after the entry (or before it, if `from_oldest`); None without a
    depth."""
    asked_depth: int | None = None
    """The depth as the author wrote it, set only if it is greater than the maximum depth."""
    from_oldest: bool = False
    outlet: str = ""
    """The name of the outlet that collects the entry, for the position "outlet"."""
    anchor: Anchor | None = None
    """The component that the entry is placed next to, also for some entries "before" or "after"."""
    mention: Mention | None = None
    """The message that the entry is placed next to, for the position "at_mention"."""
    role: Role = "system"
    order: float = 100
    """The order of the entry among texts at the same place."""
    priority: float = 100
    """The rank in the lore budget. Entries with a high priority get tokens first."""
    first_to_go: bool = False
    """True if a full budget leaves this entry out before all others (`@@ignore_on_max_context`)."""
    ignore_budget: bool = False
    case_sensitive: bool | None = None
    match_whole_words: bool | None = None
    scan_depth: int | None = None
    sources: frozenset[SourceName] = frozenset()
    hears_movement: bool = False
    """True if keys are also searched in messages about a character who arrives or leaves."""
    gates: Gates = NO_GATES
    recursion: Recursion = NO_RECURSION
    timing: Timing = NO_TIMING
    grouping: Grouping = NO_GROUPS
    chance: float = 100
    """The probability, in percent, that the entry becomes active after its conditions are met."""
    conditions: tuple[Condition, ...] = ()
    decorators: tuple[Decorator, ...] = ()
    refused: str | None = None
    """Why the entry can never be active (it asks for something impossible); None if it can."""

    @property
    def is_usable(self) -> bool:
        """True if no field of the entry makes it inactive in every turn."""
        return self.enabled and self.refused is None

    @property
    def key_lists(self) -> tuple[tuple[str, ...], ...]:
        """Return all lists of keys of the entry, including the keys in its decorators."""
        return (self.keys, self.secondary_keys, *self.gates.additional, self.gates.excluded)
