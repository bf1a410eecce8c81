"""How lore is activated: the settings of one composition and the flags of a preset, as values.

There is one engine. `ActivationRules` are what a builder may set; `PresetFlags` tell our own
decisions (`evennia_ai`) from what SillyTavern 1.12 does (`sillytavern`), one flag for each point
where the two differ. `settings.lore` of a scenario is read here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Literal

from evennia_ai.errors import FormatError
from evennia_ai.foreign.strict_json import one_line
from evennia_ai.lorebook import checks
from evennia_ai.lorebook.entry import CLOCKS, ClockName

Preset = Literal["evennia_ai", "sillytavern"]
Overflow = Literal["skip", "stop"]
Strategy = Literal["evenly", "character_first", "global_first"]
WHERE: Final = "settings.lore"


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetFlags:
    """Where the presets differ; each flag is one decision.

    Order: `high_order_first` activates entries of a high order first; `ties_narrow_first` lets the
    narrower attachment go first among equals; `ties_reversed` puts equals out in reverse.
    Scanning: `ascii_words` bounds a word by ASCII letters, digits and `_`, looks for a key of
    several words anywhere and folds case letter by letter; `one_text` lets a pattern reach over
    messages; `patterns_by_form` takes every /pattern/ for one; `blank_keys_match` lets a key of
    blanks match anything;
    `depth_0_is_blind` keeps an entry of scan depth 0 from recursed text as well;
    `widening_is_fresh` keeps recursed text from a scan that was widened for minimum activations;
    `widens_beyond` lets the widened scan go one message beyond its limit.
    Recursion: `first_pass_counts` among the steps of the limit; `levels_are_walked` even when
    nothing recursed.
    Groups: `losers_compete` in their further groups all the same; `served_by_whole_text`: a group
    is served in a later pass only by an entry whose whole group text is its name;
    `scores_as_written`: blanks and macros of keys stand for themselves in a score;
    `rest_ends_a_stay`: a sticky member whose cooldown runs as well is put out.
    Chance: `chance_is_inclusive`: 50 passes on a roll of exactly 50.
    Budget: `tiers` (constants first, then by priority; else in processing order, sticky first);
    `budget_is_open`: the sum must stay below the budget, which is 1 token at least;
    `counts_what_recursed`: in a later pass only texts that were passed on count as spent, and
    those of entries that had no room are passed on.
    Decorators: `activate_in_any_case`, past filters, gates, timers and recursion as well (Card V3),
    and so does an entry that is kept after it was active.
    Content: `empty_is_active`: an entry without text counts as active, though it adds nothing.
    Notes: `blank_notes_stay`: around an empty author's note lore keeps a blank line.
    Timers: `rewinds` takes an effect back when the clock stands where it stood.
    """

    high_order_first: bool
    ties_narrow_first: bool
    ties_reversed: bool
    ascii_words: bool
    one_text: bool
    patterns_by_form: bool
    blank_keys_match: bool
    depth_0_is_blind: bool
    widening_is_fresh: bool
    first_pass_counts: bool
    levels_are_walked: bool
    losers_compete: bool
    rest_ends_a_stay: bool
    scores_as_written: bool
    served_by_whole_text: bool
    chance_is_inclusive: bool
    tiers: bool
    budget_is_open: bool
    counts_what_recursed: bool
    activate_in_any_case: bool
    empty_is_active: bool
    widens_beyond: bool
    blank_notes_stay: bool
    rewinds: bool


EVENNIA_AI: Final = PresetFlags(
    high_order_first=False,
    ties_narrow_first=True,
    ties_reversed=False,
    ascii_words=False,
    one_text=False,
    patterns_by_form=False,
    blank_keys_match=False,
    depth_0_is_blind=False,
    widening_is_fresh=False,
    first_pass_counts=False,
    levels_are_walked=False,
    losers_compete=False,
    rest_ends_a_stay=False,
    scores_as_written=False,
    served_by_whole_text=False,
    chance_is_inclusive=False,
    tiers=True,
    budget_is_open=False,
    counts_what_recursed=False,
    activate_in_any_case=True,
    empty_is_active=False,
    widens_beyond=False,
    blank_notes_stay=False,
    rewinds=False,
)
SILLYTAVERN: Final = PresetFlags(
    high_order_first=True,
    ties_narrow_first=False,
    ties_reversed=True,
    ascii_words=True,
    one_text=True,
    patterns_by_form=True,
    blank_keys_match=True,
    depth_0_is_blind=True,
    widening_is_fresh=True,
    first_pass_counts=True,
    levels_are_walked=True,
    losers_compete=True,
    rest_ends_a_stay=True,
    scores_as_written=True,
    served_by_whole_text=True,
    chance_is_inclusive=True,
    tiers=False,
    budget_is_open=True,
    counts_what_recursed=True,
    activate_in_any_case=False,
    empty_is_active=True,
    widens_beyond=True,
    blank_notes_stay=True,
    rewinds=True,
)
PRESET_FLAGS: Final[Mapping[Preset, PresetFlags]] = MappingProxyType(
    {"evennia_ai": EVENNIA_AI, "sillytavern": SILLYTAVERN}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRules:
    """How lore is activated.

    `scan_depth` counts messages from the newest, the pending event among them. At most
    `max_recursion_steps` passes follow the first (0: no limit; `sillytavern` counts the first as
    well). With `min_activations` the scan is widened until so many entries are active or
    `min_activations_depth_max` is reached (0: the whole history). The budget of all lore is
    `budget_percent` of the prompt's limit, at most `budget_tokens`; where several people speak,
    what one of them wakes takes at most `speaker_share_percent` of it and `speaker_matches`
    entries (0: no limit). At most `most_woken` entries are looked at in one turn (0: no limit).
    `clock` is what timers count that name none. `dice` is a fixed number in [0, 1) for every roll.
    `dry_run` neither reads nor writes timers. `greeting_index` is the greeting the conversation
    began with, `user_icon` the name of the player's icon, None where it is not known.
    """

    rules: Preset = "evennia_ai"
    scan_depth: int = 4
    recursive: bool = True
    max_recursion_steps: int = 3
    case_sensitive: bool = False
    match_whole_words: bool = True
    include_names: bool = True
    budget_percent: float = 25
    budget_tokens: int | None = None
    overflow: Overflow = "skip"
    min_activations: int = 0
    min_activations_depth_max: int = 0
    group_scoring: bool = False
    strategy: Strategy = "evenly"
    dice: float | None = None
    dry_run: bool = False
    clock: ClockName = "turns"
    speaker_share_percent: float = 100
    speaker_matches: int = 0
    most_woken: int = 2000
    greeting_index: int | None = 0
    user_icon: str | None = None

    @property
    def flags(self) -> PresetFlags:
        """The decisions of the preset."""
        return PRESET_FLAGS[self.rules]

    def budget(self, limit_tokens: int) -> int:
        """Tokens that all lore may take of a prompt of `limit_tokens`."""
        exact = limit_tokens * self.budget_percent / 100
        share = max(1, int(exact + 0.5)) if self.flags.budget_is_open else int(exact)
        return share if self.budget_tokens is None else min(share, self.budget_tokens)


# What a preset sets that the scenario does not.
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


def read_rules(data: Mapping[str, Any], *, where: str = WHERE) -> ActivationRules:
    """The rules that `settings.lore` of a scenario asks for: a preset, then overrides.

    FormatError: an unknown setting or a value that it cannot have.
    """
    if not isinstance(data, Mapping):
        raise FormatError("scenario", f"{where}: must be an object")
    unknown = [str(name) for name in data if name not in _ALLOWED]
    if unknown:
        names = one_line(", ".join(unknown))
        raise FormatError(
            "scenario", f"{where}: unknown setting {names}; known are {', '.join(_ALLOWED)}"
        )
    for name, value in data.items():
        wanted = _ALLOWED[name](value)
        if wanted:
            shown = one_line(repr(value))[:60]
            raise FormatError("scenario", f"{where}.{name}: must be {wanted}, not {shown}")
    preset = PRESETS[data.get("rules", "evennia_ai")]
    return ActivationRules(**{**preset, **data})


def _chance(value: Any) -> str:
    return "" if checks.is_number(value) and 0 <= value < 1 else "a number in [0, 1)"


_ALLOWED: Final[Mapping[str, checks.Check]] = {
    "rules": checks.one_of("evennia_ai", "sillytavern"),
    "scan_depth": checks.count,
    "recursive": checks.flag,
    "max_recursion_steps": checks.count,
    "case_sensitive": checks.flag,
    "match_whole_words": checks.flag,
    "include_names": checks.flag,
    "budget_percent": checks.percent,
    "budget_tokens": checks.or_null(checks.count),
    "overflow": checks.one_of("skip", "stop"),
    "min_activations": checks.count,
    "min_activations_depth_max": checks.count,
    "group_scoring": checks.flag,
    "strategy": checks.one_of("evenly", "character_first", "global_first"),
    "dice": checks.or_null(_chance),
    "dry_run": checks.flag,
    "clock": checks.one_of(*CLOCKS),
    "speaker_share_percent": checks.percent,
    "speaker_matches": checks.count,
    "most_woken": checks.count,
}
assert _ALLOWED.keys() <= {field.name for field in fields(ActivationRules)}
