"""One entry of a book, as a value the activation works on.

An entry says where it stands, what wakes it, what it wakes, how long it stays and what its text
is, with its decorators already applied. What an entry asks for and nobody can do stands in
`refused`; such an entry is never active and its verdict says why. A new field of an entry begins in
the table of `formats.entry_fields`.
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
# The places inside the history, which clamps them.
IN_HISTORY: Final[tuple[Position, ...]] = ("depth", AT_MENTION)
# Characters of a key; a longer word never matches.
MAX_KEY: Final = 1000
Side = Literal["before", "after"]
SIDES: Final[tuple[Side, ...]] = get_args(Side)
# Which of the messages that have a key, where several do.
Mentioning = Literal["newest", "oldest"]
MENTIONINGS: Final[tuple[Mentioning, ...]] = get_args(Mentioning)
# How secondary keys decide, beside a key that was found (SillyTavern's numbers 0 to 3).
Logic = Literal["any", "not_all", "not_any", "all"]
# Which of the keys are regular expressions: those of the form /pattern/flags, all, or none.
Patterns = Literal["none", "by_form", "all"]
# What may be scanned beside the conversation, where an entry asks for it.
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
    """Conditions of an entry beside its keys (Card V3 decorators); None is no condition.

    `additional` must each have one key in the scanned text, `excluded` none at all. Once the entry
    was active, `kept_after_match` wakes it in any case and `never_after_match` never again.
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
    """How an entry takes part in recursion.

    `excluded`: texts of other entries do not wake it. `prevented`: its own text wakes nobody.
    `delay_level` above 0: it sleeps until recursion has reached that level.
    """

    excluded: bool = False
    prevented: bool = False
    delay_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long an entry stays once it was active, how long it then rests, when it may begin.

    All count on `clock`, None leaves it to the rules. An entry that is sticky for N is active in
    the N counts that begin with the one that woke it; 0 is not at all.
    """

    sticky: int = 0
    cooldown: int = 0
    delay: int = 0
    clock: ClockName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The inclusion groups of an entry: of each, one member at most is active.

    `written` is the text the names were read from. `preferred` members go before the others and
    the roll; `scored` keeps only members with the most keys found, None leaves it to the rules.
    `cooldown` above 0 lets the whole group rest after this entry was active.
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
    """A place beside a message in which a key was found: on which side, and of which message."""

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
    """As written: with macros, blanks, repetitions."""
    secondary_keys: tuple[str, ...] = ()
    selective: bool = True
    """Whether the secondary keys count, as `logic` says."""
    logic: Logic = "any"
    patterns: Patterns = "none"
    enabled: bool = True
    constant: bool = False
    template: Template
    position: Position = "after"
    depth: int | None = None
    """From the newest message, or the oldest; None unless the position is "depth"."""
    asked_depth: int | None = None
    """What was written where no history has it."""
    from_oldest: bool = False
    outlet: str = ""
    """The name of the position "outlet"."""
    anchor: Anchor | None = None
    """Beside what it stands; also of "before" and "after" where the description alone is meant."""
    mention: Mention | None = None
    """Beside which message it stands, of the position "at_mention"."""
    role: Role = "system"
    order: float = 100
    """The place among its neighbours."""
    priority: float = 100
    """The survival under the budget; high survives."""
    first_to_go: bool = False
    """Comes before any priority."""
    ignore_budget: bool = False
    case_sensitive: bool | None = None
    match_whole_words: bool | None = None
    scan_depth: int | None = None
    sources: frozenset[SourceName] = frozenset()
    hears_movement: bool = False
    """Whether its keys are looked for in what the game tells of who comes and goes as well."""
    gates: Gates = NO_GATES
    recursion: Recursion = NO_RECURSION
    timing: Timing = NO_TIMING
    grouping: Grouping = NO_GROUPS
    chance: float = 100
    """In percent."""
    conditions: tuple[Condition, ...] = ()
    decorators: tuple[Decorator, ...] = ()
    refused: str | None = None
    """What it asks for and nobody can do: then it is never active, and this is why."""

    @property
    def is_usable(self) -> bool:
        """Whether it can ever be active, as far as itself goes."""
        return self.enabled and self.refused is None

    @property
    def key_lists(self) -> tuple[tuple[str, ...], ...]:
        """All its lists of keys, those of its decorators too."""
        return (self.keys, self.secondary_keys, *self.gates.additional, self.gates.excluded)
