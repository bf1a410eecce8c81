"""The rules of lore activation: the settings of a builder, and the flags of a preset.

Both presets run the same code. `ActivationRules` are the settings of a builder. `PresetFlags` has
one flag for each point in which our own preset (`evennia_ai`) differs from SillyTavern 1.12
(`sillytavern`). `read_rules` reads `settings.lore` of a scenario.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field

from evennia_ai.engine.foreign.fields import Must, check_settings

Preset = Literal["evennia_ai", "sillytavern"]
Overflow = Literal["skip", "stop"]
Strategy = Literal["evenly", "character_first", "global_first"]
# What the timers of entries count: turns of the NPC, messages that the NPC perceived, or seconds
# of game time
ClockName = Literal["turns", "messages", "seconds"]
CLOCKS: Final[tuple[ClockName, ...]] = get_args(ClockName)
WHERE: Final = "settings.lore"


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetFlags:
    """The points in which the presets differ. The defaults are those of the preset `evennia_ai`."""

    high_order_first: bool = False
    """Entries with a high order are processed first."""
    ties_narrow_first: bool = True
    """Among entries of equal order, those of a book with a narrower attachment come first."""
    ties_reversed: bool = False
    """Entries of equal order are placed in reverse."""
    ascii_words: bool = False
    """Only ASCII letters, digits and `_` count as word characters, and a key of several words is
    also found inside longer words."""
    one_text: bool = False
    """The scanned messages are one text, so a regular expression may match across messages."""
    patterns_by_form: bool = False
    """Every key of the form /pattern/flags is a regular expression."""
    blank_keys_match: bool = False
    """A key that consists of blanks matches any text."""
    depth_0_is_blind: bool = False
    """An entry with scan depth 0 does not search the texts of active entries either."""
    widening_is_fresh: bool = False
    """A scan widened for minimum activations does not search the texts of active entries."""
    first_pass_counts: bool = False
    """The first activation pass counts as a step against `max_recursion_steps`."""
    levels_are_walked: bool = False
    """Delay levels are reached even if there was no recursion pass before."""
    losers_compete: bool = False
    """An entry that lost in one inclusion group still competes in its other groups."""
    rest_ends_a_stay: bool = False
    """A sticky member of a group does not keep its place there while its cooldown runs."""
    scores_as_written: bool = False
    """A score compares keys as they are written, with their blanks and unexpanded macros."""
    served_by_whole_text: bool = False
    """An active entry closes a group for later passes only if its whole group field is the name of
    that group."""
    chance_is_inclusive: bool = False
    """An entry with a chance of 50 becomes active on a roll of exactly 50."""
    tiers: bool = True
    """Constant entries are offered room in the budget first, then entries by priority. If False,
    entries are offered room in processing order, sticky entries first."""
    budget_is_open: bool = False
    """The tokens of the entries must stay below the budget, and a budget has at least 1 token."""
    counts_what_recursed: bool = False
    """In a later pass, only texts that recursion searches count as spent. Recursion also searches
    texts that had no room in the budget."""
    activate_in_any_case: bool = True
    """`@@activate` and `@@keep_activate_after_match` activate an entry regardless of its filters,
    gates, timers and recursion settings (Card V3)."""
    empty_is_active: bool = False
    """An entry without text counts as active, although it adds nothing to the prompt."""
    widens_beyond: bool = False
    """A widened scan may reach one message beyond its limit."""
    blank_notes_stay: bool = False
    """If the author's note is empty, a blank line stays in its place among its entries."""
    rewinds: bool = False
    """A timer is undone if its clock has not moved since the timer started."""


EVENNIA_AI: Final = PresetFlags()
# A flag exists only where SillyTavern does the opposite of the preset `evennia_ai`. So its preset
# is the negation of every default.
SILLYTAVERN: Final = PresetFlags(**{flag.name: not flag.default for flag in fields(PresetFlags)})
PRESET_FLAGS: Final[Mapping[Preset, PresetFlags]] = MappingProxyType(
    {"evennia_ai": EVENNIA_AI, "sillytavern": SILLYTAVERN}
)


_Whole = Annotated[int, Field(ge=0)]
_Percent = Annotated[float, Field(ge=0, le=100), Must("a number from 0 to 100")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRules:
    """The settings that decide in one turn which lorebook entries are active."""

    rules: Preset = "evennia_ai"
    scan_depth: _Whole = 4
    """How many of the newest messages are searched for keys, including the pending event."""
    recursive: bool = True
    max_recursion_steps: _Whole = 3
    """The most passes after the first one; the preset `sillytavern` also counts the first pass.
    0 means no limit."""
    case_sensitive: bool = False
    match_whole_words: bool = True
    include_names: bool = True
    budget_percent: _Percent = 25
    """The budget of all lore, in percent of the prompt's token limit."""
    budget_tokens: Annotated[
        Annotated[int, Field(ge=0)] | None, Must("a whole number, 0 or more, or null")
    ] = None
    """The most tokens of the lore budget; None means no limit besides the percentage."""
    overflow: Overflow = "skip"
    min_activations: _Whole = 0
    """The scan is widened until this many entries are active."""
    min_activations_depth_max: _Whole = 0
    """The greatest depth of a widened scan; 0 means the whole history."""
    group_scoring: bool = False
    strategy: Strategy = "evenly"
    dice: Annotated[
        Annotated[float, Field(ge=0, lt=1)] | None, Must("a number in [0, 1), or null")
    ] = None
    """A fixed number in [0, 1) that replaces every roll; None rolls normally."""
    dry_run: bool = False
    """If True, the timers of entries are neither read nor written."""
    clock: ClockName = "turns"
    """The clock of timers that name no clock."""
    speaker_share_percent: _Percent = 100
    """The share of the budget for entries that one speaker activates, if several people speak."""
    speaker_matches: _Whole = 0
    """The most entries that one speaker may activate, if several people speak; 0: no limit."""
    most_woken: _Whole = 2000
    """The most entries that are judged in one turn; 0: no limit."""
    greeting_index: int | None = 0
    """The index of the greeting that began the conversation; None if it is not known."""
    user_icon: str | None = None
    """The name of the player's icon; None if it is not known."""

    @property
    def flags(self) -> PresetFlags:
        """The flags of the chosen preset."""
        return PRESET_FLAGS[self.rules]


# The settings that each preset changes. A scenario may override them.
PRESETS: Final[Mapping[Preset, Mapping[str, Any]]] = MappingProxyType(
    {
        "evennia_ai": {},
        "sillytavern": {
            "scan_depth": 2,
            "recursive": False,
            "max_recursion_steps": 0,
            "overflow": "stop",
            "strategy": "character_first",
            "clock": "messages",
            "most_woken": 0,
        },
    }
)


# Rules that `settings.lore` cannot set, because other settings of the scenario decide them.
_SAID_ELSEWHERE: Final = ("greeting_index", "user_icon")


def read_rules(data: Mapping[str, Any], *, where: str = WHERE) -> ActivationRules:
    """Read the rules in `settings.lore` of a scenario: a preset, then overrides.

    Raises:
        FormatError: A setting is unknown or has a value that it cannot have.
    """
    given = check_settings(ActivationRules, data, kind="scenario", where=where, but=_SAID_ELSEWHERE)
    return ActivationRules(**{**PRESETS[given.get("rules", "evennia_ai")], **given})
