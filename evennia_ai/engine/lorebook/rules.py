"""The rules of lore activation: the settings of a builder, and the flags of a preset.

`ActivationRules` are the settings of a builder. Both presets run the same code. `PresetFlags` has a
flag for each point in which the preset `evennia_ai` differs from `sillytavern` (SillyTavern 1.19).
`read_rules` reads `settings.lore` of a scenario.
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
    """The points in which the presets differ. The default values are the preset `evennia_ai`."""

    high_order_first: bool = False
    """Entries with a high order are processed first."""
    ties_narrow_first: bool = True
    """Of entries with equal order, those of the book with the narrower attachment come first."""
    player_follows_chat: bool = False
    """A player's book comes right after the chat's in every strategy."""
    ties_reversed: bool = False
    """Entries of equal order are placed in reverse order."""
    ascii_words: bool = False
    """Only ASCII letters, digits and `_` are parts of words. A key of several words is also found
    inside longer words."""
    one_text: bool = False
    """All scanned messages are searched as one text, so a regular expression can match across
    messages."""
    patterns_by_form: bool = False
    """Every key of the form /pattern/flags is a regular expression."""
    blank_keys_match: bool = False
    """A key that consists of blanks matches any text."""
    depth_0_is_blind: bool = False
    """An entry with scan depth 0 searches nothing, not even the texts of active entries."""
    widening_is_fresh: bool = False
    """After the scan was widened to reach more entries, the texts of active entries are not
    searched."""
    first_pass_counts: bool = False
    """The first activation pass counts towards `max_recursion_steps`."""
    levels_are_walked: bool = False
    """Delay levels are reached even without a recursion pass before them."""
    losers_compete: bool = False
    """An entry that lost in one inclusion group still competes in its other groups."""
    rest_ends_a_stay: bool = False
    """A sticky member of a group loses, like all other members, if its own cooldown is running."""
    scores_as_written: bool = False
    """To score an entry, keys are searched as written, with blanks around them and with macros."""
    served_by_whole_text: bool = False
    """A group counts as having an active entry only if its name is the whole group field of that
    entry."""
    chance_is_inclusive: bool = False
    """An entry with a chance of 50 also becomes active on a roll of exactly 50."""
    tiers: bool = True
    """Constant entries get tokens of the budget first, then other entries by priority. If False,
    entries get tokens in processing order, sticky entries first."""
    budget_is_open: bool = False
    """The entries must use fewer tokens than the budget, and a budget is at least 1 token."""
    counts_what_recursed: bool = False
    """In a later pass, only texts that recursion searches count as spent. Recursion also searches
    texts that did not fit into the budget."""
    activate_in_any_case: bool = True
    """`@@activate` and `@@keep_activate_after_match` activate an entry regardless of its filters,
    gates, timers and recursion settings (Card V3)."""
    empty_is_active: bool = False
    """An entry without text can be active, although it adds nothing to the prompt."""
    widens_beyond: bool = False
    """A widened scan may reach one message further than its limit."""
    blank_notes_stay: bool = False
    """If the author's note is empty, a blank line takes its place among the entries around it."""
    rewinds: bool = False
    """A timer is undone if its clock is not later than at its start, as after going back in the
    chat."""


EVENNIA_AI: Final = PresetFlags()
# A flag exists only where SillyTavern does the opposite. So the preset `sillytavern` has every flag
# with the opposite value.
SILLYTAVERN: Final = PresetFlags(**{flag.name: not flag.default for flag in fields(PresetFlags)})
PRESET_FLAGS: Final[Mapping[Preset, PresetFlags]] = MappingProxyType(
    {"evennia_ai": EVENNIA_AI, "sillytavern": SILLYTAVERN}
)


_Whole = Annotated[int, Field(ge=0)]
_Percent = Annotated[float, Field(ge=0, le=100), Must("a number from 0 to 100")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRules:
    """The settings that decide which lorebook entries are active in a turn."""

    rules: Preset = "evennia_ai"
    scan_depth: _Whole = 4
    """How many of the newest messages are searched for keys, including the event to answer."""
    recursive: bool = True
    max_recursion_steps: _Whole = 3
    """The maximum number of recursion passes; 0 means no limit. The preset `sillytavern` also
    counts the first pass."""
    case_sensitive: bool = False
    match_whole_words: bool = True
    include_names: bool = True
    budget_percent: _Percent = 25
    """The budget of all lore, in percent of the maximum tokens of the prompt."""
    budget_tokens: Annotated[
        Annotated[int, Field(ge=0)] | None, Must("a whole number, 0 or more, or null")
    ] = None
    """The maximum tokens of the lore budget; None means that only the percentage limits it."""
    overflow: Overflow = "skip"
    min_activations: _Whole = 0
    """The scan is widened to older messages until this many entries are active."""
    min_activations_depth_max: _Whole = 0
    """How many messages a widened scan may reach; 0 means the whole history."""
    group_scoring: bool = False
    strategy: Strategy = "evenly"
    dice: Annotated[
        Annotated[float, Field(ge=0, lt=1)] | None, Must("a number in [0, 1), or null")
    ] = None
    """A number in [0, 1) to use in place of every random number; None for random numbers."""
    dry_run: bool = False
    """If True, sticky entries and cooldowns are neither read nor stored. A delay still counts."""
    clock: ClockName = "turns"
    """The clock for entries that name no clock of their own."""
    speaker_share_percent: _Percent = 100
    """How many percent of the budget one speaker's entries may take, if several people speak."""
    speaker_matches: _Whole = 0
    """How many entries one speaker may activate, if several people speak; 0 means no limit."""
    most_woken: _Whole = 2000
    """How many entries are judged in one turn at most; 0 means `MOST_JUDGED`."""
    greeting_index: int | None = 0
    """The index of the greeting with which the conversation began; None if that is not known."""
    user_icon: str | None = None
    """The name of the player's icon; None if it is not known."""

    @property
    def flags(self) -> PresetFlags:
        """The flags of the chosen preset."""
        return PRESET_FLAGS[self.rules]


# The settings that each preset changes; a scenario may override them.
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


# Rules that `settings.lore` cannot set, because other parts of the scenario decide them.
_SAID_ELSEWHERE: Final = ("greeting_index", "user_icon")


def read_rules(data: Mapping[str, Any], *, where: str = WHERE) -> ActivationRules:
    """Read the rules of activation from `settings.lore`: a preset, then settings that override it.

    Raises:
        FormatError: A setting is unknown or has an invalid value.
    """
    given = check_settings(ActivationRules, data, kind="scenario", where=where, but=_SAID_ELSEWHERE)
    return ActivationRules(**{**PRESETS[given.get("rules", "evennia_ai")], **given})
