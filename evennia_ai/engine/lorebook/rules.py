"""The rules of activation: settings of builders, and the flags of a preset.

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
# The clock of durations: the NPC's own turns, messages that it perceived, seconds of game time.
ClockName = Literal["turns", "messages", "seconds"]
CLOCKS: Final[tuple[ClockName, ...]] = get_args(ClockName)
WHERE: Final = "settings.lore"


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetFlags:
    """The points in which the presets differ; each default is that of our own preset."""

    high_order_first: bool = False
    """Entries of a high order are activated first."""
    ties_narrow_first: bool = True
    """Among equals the narrower attachment goes first."""
    ties_reversed: bool = False
    """Equals come out in reverse."""
    ascii_words: bool = False
    """ASCII letters, digits and `_` bound a word; a key of several words is found anywhere."""
    one_text: bool = False
    """A pattern may reach over messages."""
    patterns_by_form: bool = False
    """Every key of the form /pattern/ is one."""
    blank_keys_match: bool = False
    """A key of blanks matches anything."""
    depth_0_is_blind: bool = False
    """An entry of scan depth 0 does not see recursed text either."""
    widening_is_fresh: bool = False
    """A scan that was widened for minimum activations does not see recursed text."""
    first_pass_counts: bool = False
    """The first pass is one of the steps of the limit."""
    levels_are_walked: bool = False
    """Delay levels are reached even when nothing recursed."""
    losers_compete: bool = False
    """Who lost in one group competes in its further groups all the same."""
    rest_ends_a_stay: bool = False
    """A sticky member of a group whose cooldown runs as well is put out."""
    scores_as_written: bool = False
    """Blanks and macros of keys stand for themselves in a score."""
    served_by_whole_text: bool = False
    """Only an entry whose whole group text is its name serves a group in a later pass."""
    chance_is_inclusive: bool = False
    """A chance of 50 passes on a roll of exactly 50."""
    tiers: bool = True
    """Constants have room first, then priority counts; else processing order, sticky first."""
    budget_is_open: bool = False
    """The sum must stay below the budget, which is 1 token at least."""
    counts_what_recursed: bool = False
    """In a later pass only texts passed on are spent; what had no room is passed on too."""
    activate_in_any_case: bool = True
    """`@@activate` and a kept entry go past filters, gates, timers, recursion (Card V3)."""
    empty_is_active: bool = False
    """An entry without text counts as active, though it adds nothing."""
    widens_beyond: bool = False
    """The widened scan goes one message beyond its limit."""
    blank_notes_stay: bool = False
    """Around an empty author's note lore keeps a blank line."""
    rewinds: bool = False
    """A timer is taken back when the clock stands where it stood."""


EVENNIA_AI: Final = PresetFlags()
# In each of these points SillyTavern does the opposite: that is why there is a flag.
SILLYTAVERN: Final = PresetFlags(**{flag.name: not flag.default for flag in fields(PresetFlags)})
PRESET_FLAGS: Final[Mapping[Preset, PresetFlags]] = MappingProxyType(
    {"evennia_ai": EVENNIA_AI, "sillytavern": SILLYTAVERN}
)


_Whole = Annotated[int, Field(ge=0)]
_Percent = Annotated[float, Field(ge=0, le=100), Must("a number from 0 to 100")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRules:
    """The settings of activation in one turn."""

    rules: Preset = "evennia_ai"
    scan_depth: _Whole = 4
    """Messages from the newest, the pending event among them."""
    recursive: bool = True
    max_recursion_steps: _Whole = 3
    """Passes after the first; `sillytavern` counts the first too. 0: no limit."""
    case_sensitive: bool = False
    match_whole_words: bool = True
    include_names: bool = True
    budget_percent: _Percent = 25
    """The budget of all lore, of the prompt's limit."""
    budget_tokens: Annotated[
        Annotated[int, Field(ge=0)] | None, Must("a whole number, 0 or more, or null")
    ] = None
    """At most so many tokens of it."""
    overflow: Overflow = "skip"
    min_activations: _Whole = 0
    """The scan is widened until so many entries are active."""
    min_activations_depth_max: _Whole = 0
    """How far it is widened; 0: over the whole history."""
    group_scoring: bool = False
    strategy: Strategy = "evenly"
    dice: Annotated[
        Annotated[float, Field(ge=0, lt=1)] | None, Must("a number in [0, 1), or null")
    ] = None
    """A fixed number in [0, 1) for every roll."""
    dry_run: bool = False
    """Timers are neither read nor written."""
    clock: ClockName = "turns"
    """What timers count that name no clock."""
    speaker_share_percent: _Percent = 100
    """Of the budget, for what one of several speakers wakes."""
    speaker_matches: _Whole = 0
    """Entries that one of several speakers may wake; 0: no limit."""
    most_woken: _Whole = 2000
    """Entries that are looked at in one turn; 0: no limit."""
    greeting_index: int | None = 0
    """The greeting the conversation began with; None: not known."""
    user_icon: str | None = None
    """The name of the player's icon; None: not known."""

    @property
    def flags(self) -> PresetFlags:
        """The flags of the preset."""
        return PRESET_FLAGS[self.rules]


# The settings of a preset; the scenario overrides them.
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


# Rules that other settings of the scenario decide.
_SAID_ELSEWHERE: Final = ("greeting_index", "user_icon")


def read_rules(data: Mapping[str, Any], *, where: str = WHERE) -> ActivationRules:
    """Read the rules in `settings.lore` of a scenario: a preset, then overrides.

    Raises:
        FormatError: A setting is unknown or has a value that it cannot have.
    """
    given = check_settings(ActivationRules, data, kind="scenario", where=where, but=_SAID_ELSEWHERE)
    return ActivationRules(**{**PRESETS[given.get("rules", "evennia_ai")], **given})
