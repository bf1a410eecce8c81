"""Settings of one NPC: what its builder wants otherwise than the game.

Kept in one Evennia Attribute as plain values, judged by pydantic on the way in, read once and kept
until the Attribute changes, whoever changes it. A builder names a profile of models; addresses and
keys are in the admin's settings alone.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final, Literal, get_args

from evennia.utils import logger
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from evennia_ai.conf import SettingError, conf
from evennia_ai.llm.allowances import LIMITS
from evennia_ai.llm.profiles import ModelProfile
from evennia_ai.prompt.given_settings import near

ATTRIBUTE: Final = "ai_settings"
MOST_CHANGES: Final = 50
"""How many changes are remembered."""

LEAST_TICK_SECONDS: Final = 5
_DAY: Final = 24 * 60 * 60

Mode = Literal["name_match", "always", "whisper_only", "decide"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_Word = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[^\s,=]+$")]
_Words = Annotated[tuple[_Word, ...], Field(strict=False, max_length=50)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCSettings:
    """What is set for an NPC; None or "" leaves it to the game or to the profile.

    `model` is another model at the profile's address. `tick_seconds` is how often it may act on
    its own, 0 for never. `languages` are those it understands, None for all; `react_to` are kinds
    of events it answers though they are not addressed to it. `limits` narrow what the game allows
    it. `thinking` is the gesture of an NPC that takes long.
    """

    profile: str = ""
    model: str = ""
    temperature: float | None = None
    top_p: float | None = None
    reply_tokens: int | None = None
    mode: Mode = "name_match"
    cooldown_seconds: float | None = None
    engagement_seconds: float | None = None
    tick_seconds: float = 0.0
    hop_limit: int | None = None
    tools: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    thinking: str = ""
    talkativeness: float = 0.5
    languages: tuple[str, ...] | None = None
    react_to: tuple[str, ...] = ()

    def applied_to(self, profile: ModelProfile) -> ModelProfile:
        """The profile with what this NPC has otherwise; its model is the caller's matter.

        A reply that would take all of the profile's context is left as the profile has it.
        """
        if self.temperature is None and self.top_p is None and not self.reply_tokens:
            return profile
        sampling = profile.sampling
        if self.temperature is not None:
            sampling = replace(sampling, temperature=self.temperature)
        if self.top_p is not None:
            sampling = replace(sampling, top_p=self.top_p)
        wanted_tokens = self.reply_tokens or profile.reply_tokens
        fits = wanted_tokens < profile.context_tokens
        reply_tokens = wanted_tokens if fits else profile.reply_tokens
        return replace(profile, sampling=sampling, reply_tokens=reply_tokens)


USUAL: Final = NPCSettings()
NAMES: Final = tuple(one.name for one in fields(NPCSettings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a setting: when, by whom, from what to what; None is what the game has."""

    at: float
    by: str
    name: str
    old: Any
    new: Any


_OF_A_CHANGE: Final = frozenset(one.name for one in fields(Change))


class KeptSettings:
    """The settings of one NPC, read again only when the Attribute holds something else."""

    def __init__(self, npc: Any) -> None:
        self._npc: Final = npc
        self._stored: Any = None
        self._settings = USUAL
        self.problems: tuple[str, ...] = ()

    def now(self) -> NPCSettings:
        """The settings; values that cannot be are left out, which is logged once."""
        stored = _stored(self._npc)
        # Whatever changes an Attribute gives it a new value object, in-place changes too.
        if stored is not self._stored:
            self._stored = stored
            self._settings, self.problems = _read(_values_in(stored))
            for problem in self.problems:
                logger.log_warn(f"evennia_ai: settings of NPC {self._npc.id}: {problem}")
        return self._settings


def settings_of(npc: Any) -> NPCSettings:
    """What is set for this NPC."""
    found: NPCSettings = npc.ai.settings
    return found


def settings_in(stored: Any) -> NPCSettings:
    """What the value of the Attribute `ATTRIBUTE` says, read for a list without its NPC."""
    return _read(_values_in(stored))[0]


def given_to(npc: Any) -> frozenset[str]:
    """The names of the settings that were set; all others are as the game has them."""
    return frozenset(_values_in(_stored(npc)))


def changes_of(npc: Any) -> tuple[Change, ...]:
    """What was changed, the newest last; at most the last 50 changes."""
    return tuple(Change(**one) for one in _changes_in(_stored(npc)))


def changed(npc: Any, *, by: str = "", **values: Any) -> NPCSettings:
    """Set these settings of an NPC, None for what the game has; what it has then.

    SettingError says which cannot be, and nothing is changed. Each change is logged and remembered
    with who made it. What was stored and cannot be goes with the first change.
    """
    stored = _stored(npc)
    old = {str(name): value for name, value in _values_in(stored).items()}
    kept, _ = _usable(old)
    wanted = {name: value for name, value in {**kept, **values}.items() if value is not None}
    new = _judged(wanted, who=npc.key)
    differing = [name for name in {**old, **values} if old.get(name) != new.get(name)]
    made = [_change(name, by=by, old=old.get(name), new=new.get(name)) for name in differing]
    if made:
        changes = [*_changes_in(stored), *made][-MOST_CHANGES:]
        npc.attributes.add(ATTRIBUTE, {"values": new, "changes": changes})
    for one in made:
        told = f"{one['name']} was {one['old']!r}, is {one['new']!r}"
        logger.log_msg(f"evennia_ai: NPC {npc.id}: {told}, set by {by or 'the game'}")
    return settings_of(npc)


class _Values(BaseModel):
    """The settings of an NPC as they are stored; every one may be left out."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    profile: str = ""
    model: Annotated[str, Field(max_length=200)] = ""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    reply_tokens: Annotated[int, Field(ge=1)] | None = None
    mode: Mode = "name_match"
    cooldown_seconds: Annotated[float, Field(ge=0, le=_DAY)] | None = None
    engagement_seconds: Annotated[float, Field(ge=0, le=_DAY)] | None = None
    tick_seconds: Annotated[float, Field(ge=0, le=30 * _DAY)] = 0.0
    hop_limit: Annotated[int, Field(ge=0, le=100)] | None = None
    tools: _Words = ()
    limits: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    thinking: Annotated[str, Field(max_length=200)] = ""
    talkativeness: Annotated[float, Field(ge=0, le=1)] = 0.5
    languages: _Words | None = None
    react_to: _Words = ()

    @field_validator("profile")
    @classmethod
    def _is_known(cls, value: str) -> str:
        profiles = conf().profiles
        if value and value not in profiles:
            raise ValueError(f"there is no profile {value!r}{near(value, profiles)}")
        return value

    @field_validator("tick_seconds")
    @classmethod
    def _leaves_time(cls, value: float) -> float:
        if 0 < value < LEAST_TICK_SECONDS:
            raise ValueError(f"must be 0 for never, or at least {LEAST_TICK_SECONDS}")
        return value

    @field_validator("model", "thinking")
    @classmethod
    def _is_one_line(cls, value: str) -> str:
        if value and not value.isprintable():
            raise ValueError("must be one line of printable text")
        return value.strip()

    @field_validator("limits")
    @classmethod
    def _are_limits(cls, value: dict[str, int]) -> dict[str, int]:
        for name in value:
            if name not in LIMITS:
                meant = near(name, LIMITS) or f"; they are {', '.join(LIMITS)}"
                raise ValueError(f"there is no limit {name!r}{meant}")
        return value

    @model_validator(mode="after")
    def _leaves_the_prompt_room(self) -> "_Values":
        profiles = conf().profiles
        profile = profiles.get(self.profile) or profiles[conf().model_roles["speaker"][0]]
        if self.reply_tokens and self.reply_tokens >= profile.context_tokens:
            raise ValueError(
                f"reply_tokens must be fewer than the {profile.context_tokens} of the profile"
                f" '{profile.name}': the prompt needs some"
            )
        return self


def _judged(values: Mapping[str, Any], *, who: str) -> dict[str, Any]:
    """The values as they are stored; SettingError where one of them cannot be."""
    try:
        read = _Values.model_validate(dict(values))
    except ValidationError as error:
        told = "; ".join(_told(one) for one in error.errors())
        end = "" if told.endswith("?") else "."
        raise SettingError(f"{who}: {told}{end} Nothing was changed.") from None
    # JSON's kinds of values: an Attribute then compares and shows them as they are.
    return read.model_dump(mode="json", exclude_unset=True)


def _told(error: ErrorDetails) -> str:
    name = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        return f"there is no setting {name!r}{near(name, NAMES)}"
    problem = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if problem != error["msg"] and error["type"] == "value_error":
        return f"{name}: {problem}" if name else problem
    return f"{name}: {problem}, not {error['input']!r}"


def _read(values: Mapping[str, Any]) -> tuple[NPCSettings, tuple[str, ...]]:
    """What stored values say, and what of them cannot be."""
    good, problems = _usable(values)
    return NPCSettings(**dict(_Values.model_validate(good))), tuple(problems)


def _usable(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The stored values that can be, and what is wrong with the others.

    They were right once, or other code wrote them; the game may have changed since.
    """
    problems: list[str] = []
    good = {str(name): value for name, value in values.items()}
    while True:
        try:
            _Values.model_validate(good)
        except ValidationError as error:
            problems += [_told(one) for one in error.errors()]
            for one in error.errors():
                good.pop(str(one["loc"][0]) if one["loc"] else "reply_tokens", None)
        else:
            return good, problems


def _stored(npc: Any) -> Any:
    """What the Attribute holds, None where there is none; warm, this makes no query."""
    attribute = npc.attributes.get(ATTRIBUTE, return_obj=True)
    return None if attribute is None else attribute.db_value


def _values_in(stored: Any) -> dict[str, Any]:
    values = stored.get("values") if isinstance(stored, Mapping) else None
    return dict(values) if isinstance(values, Mapping) else {}


def _changes_in(stored: Any) -> list[dict[str, Any]]:
    changes = stored.get("changes") if isinstance(stored, Mapping) else None
    listed = changes if isinstance(changes, list) else []
    return [dict(one) for one in listed if isinstance(one, Mapping) and set(one) == _OF_A_CHANGE]


def _change(name: str, *, by: str, old: Any, new: Any) -> dict[str, Any]:
    return {"at": time.time(), "by": by, "name": name, "old": old, "new": new}
