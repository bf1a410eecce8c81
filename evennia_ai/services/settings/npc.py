"""The settings of one NPC, each declared once. With them a builder changes settings of the game.

A builder can name a profile of models, but only the admin's settings have addresses and keys.
`evennia_ai.npc.npc_settings` stores the values, and who changed them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from evennia_ai.engine.foreign.fields import error_words, strict_model, suggest_name
from evennia_ai.engine.prompt.language import language_named
from evennia_ai.services.llm.odd_replies import OddReplies
from evennia_ai.services.llm.profiles import ModelProfile
from evennia_ai.services.llm.quotas import LIMITS, MONEY
from evennia_ai.services.settings.conf import SettingError, conf

LEAST_TICK_SECONDS: Final = 5
_DAY: Final = 24 * 60 * 60

Mode = Literal["name_match", "always", "whisper_only", "decide"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
MODE_MEANINGS: Final[Mapping[Mode, str]] = {
    "name_match": "answers people who name it, talk or whisper to it, or go on talking with it",
    "always": "answers whatever people say, if no other NPC does",
    "whisper_only": "answers whispers, and nothing that is said aloud",
    "decide": "answers as with name_match, and a cheap model decides about the rest",
}
"""What an NPC does in each mode."""


def _known_profile(value: str) -> str:
    profiles = conf().profiles
    if value and value not in profiles:
        raise ValueError(f"there is no profile {value!r}{suggest_name(value, profiles)}")
    return value


def _leaving_time(value: float) -> float:
    if 0 < value < LEAST_TICK_SECONDS:
        raise ValueError(f"must be 0 for never, or at least {LEAST_TICK_SECONDS}")
    return value


def _one_line(value: str) -> str:
    if value and not value.isprintable():
        raise ValueError("must be one line of printable text")
    return value.strip()


def _known_limits(value: dict[str, float]) -> dict[str, float]:
    for name, most in value.items():
        if name not in LIMITS:
            meant = suggest_name(name, LIMITS) or f"; they are {', '.join(LIMITS)}"
            raise ValueError(f"there is no limit {name!r}{meant}")
        if not name.startswith(MONEY) and most != int(most):
            raise ValueError(f"{name} must be a whole number")
    return value


def _known_language(value: str) -> str:
    code = language_named(value)
    if value and not code:
        raise ValueError(f"{value!r} is no known language; write a code such as 'de'")
    return code


_Line = Annotated[str, Field(max_length=200), AfterValidator(_one_line)]
_Word = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[^\s,=]+$")]
_Words = Annotated[tuple[_Word, ...], Field(strict=False, max_length=50)]
_UpToADay = Annotated[float, Field(ge=0, le=_DAY)]
_Limits = Annotated[dict[str, Annotated[int | float, Field(ge=0)]], AfterValidator(_known_limits)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NPCSettings:
    """The settings of an NPC.

    None or "" means that the setting of the game or of the profile is used.
    """

    profile: Annotated[str, AfterValidator(_known_profile)] = ""
    model: _Line = ""
    """The name of another model at the address of the profile."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    reply_tokens: Annotated[int, Field(ge=1)] | None = None
    mode: Mode = "name_match"
    cooldown_seconds: _UpToADay | None = None
    engagement_seconds: _UpToADay | None = None
    tick_seconds: Annotated[float, Field(ge=0, le=30 * _DAY), AfterValidator(_leaving_time)] = 0.0
    """How many seconds pass before the NPC may act on its own; 0: it never does."""
    hop_limit: Annotated[int, Field(ge=0, le=100)] | None = None
    tools: _Words = ()
    limits: _Limits = field(default_factory=dict)
    """Limits that are lower than those that the game gives the NPC."""
    thinking: _Line = ""
    """What the NPC does when its answer takes long."""
    odd_replies: OddReplies | None = None
    talkativeness: Annotated[float, Field(ge=0, le=1)] = 0.5
    speaks: Annotated[str, AfterValidator(_known_language)] = ""
    """The code of the language that the NPC speaks; "": the language of the game."""
    languages: _Words | None = None
    """The languages that the NPC understands; None: all."""
    react_to: _Words = ()
    """The kinds of events that the NPC answers even if they are not addressed to it."""

    def applied_to(self, profile: ModelProfile) -> ModelProfile:
        """Return the profile with this NPC's changes, except for the model.

        A reply length that would take the whole context is ignored.
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


_SPLIT: Final = re.compile(r"[\s,]+")
_LIMIT: Final = re.compile(r"(\w+)\s*=\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)")


def _number(text: str) -> Any:
    """Return the number in `text`, or `text` itself if it is no number."""
    try:
        return float(text)
    except ValueError:
        return text


def _whole(text: str) -> Any:
    return int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else text


def _words(text: str) -> list[str]:
    return [] if text.lower() == "none" else [word for word in _SPLIT.split(text) if word]


def _limits(text: str) -> dict[str, float]:
    if text.lower() == "none":
        return {}
    if _LIMIT.sub("", text).strip(" ,"):
        raise SettingError(
            "Limits are written like calls_per_minute=5, dollars_per_day=0.5. Nothing was changed."
        )
    found = _LIMIT.findall(text)
    return {name: float(most) if "." in most else int(most) for name, most in found}


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "mode": str.lower,
    "odd_replies": str.lower,
    "speaks": str.lower,
    **dict.fromkeys(("temperature", "top_p", "talkativeness"), _number),
    **dict.fromkeys(("cooldown_seconds", "engagement_seconds", "tick_seconds"), _number),
    **dict.fromkeys(("reply_tokens", "hop_limit"), _whole),
    **dict.fromkeys(("languages", "react_to"), _words),
    "limits": _limits,
}


def read_typed(name: str, text: str) -> Any:
    """Return the value of a setting that a builder typed.

    An unreadable text is returned as it is, and `check_settings` refuses it.

    Raises:
        SettingError: The text is no list of limits.
    """
    return _READERS.get(name, str)(text)


def typed_value(value: Any) -> str:
    """Return the value of a setting as a builder types it, "" for None."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={most}" for name, most in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


USUAL: Final = NPCSettings()
NAMES: Final = tuple(one.name for one in fields(NPCSettings))


def check_settings(values: Mapping[str, Any], *, who: str) -> dict[str, Any]:
    """Check an NPC's settings, and return them in the form in which they are stored.

    Raises:
        SettingError: a value is not allowed.
    """
    read, problems = _check_values(values)
    if read is None:
        told = "; ".join(text for _, text in problems)
        end = "" if told.endswith("?") else "."
        raise SettingError(f"{who}: {told}{end} Nothing was changed.")
    # Only JSON types, so that an Evennia Attribute compares and shows the values unchanged.
    return read.model_dump(mode="json", exclude_unset=True)


def read_settings(values: Mapping[str, Any]) -> tuple[NPCSettings, tuple[str, ...]]:
    """Return the settings from stored values, and the problems of values that are ignored."""
    good, problems = usable_settings(values)
    return NPCSettings(**dict(strict_model(NPCSettings).model_validate(good))), tuple(problems)


def usable_settings(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the stored values that are allowed, and the problems of the others.

    A stored value may be wrong because the game's settings changed, or because other code wrote it.
    """
    told: list[str] = []
    good = {str(name): value for name, value in values.items()}
    while True:
        read, problems = _check_values(good)
        if read is not None:
            return good, told
        told += [text for _, text in problems]
        for name, _ in problems:
            good.pop(name, None)


def _check_values(values: Mapping[str, Any]) -> tuple[BaseModel | None, list[tuple[str, str]]]:
    """Check values. Return them as a model, or else the wrong names, each with its problem."""
    try:
        read = strict_model(NPCSettings).model_validate(dict(values))
    except ValidationError as error:
        return None, [(str(one["loc"][0]), _in_words(one)) for one in error.errors()]
    given = dict(read)
    profiles = conf().profiles
    profile = profiles.get(given["profile"]) or profiles[conf().model_roles["speaker"][0]]
    if given["reply_tokens"] and given["reply_tokens"] >= profile.context_tokens:
        problem = (
            f"reply_tokens must be fewer than the {profile.context_tokens} of the profile"
            f" '{profile.name}': the prompt needs some"
        )
        return None, [("reply_tokens", problem)]
    return read, []


def _in_words(error: ErrorDetails) -> str:
    name = str(error["loc"][0])
    if error["type"] == "extra_forbidden":
        return f"there is no setting {name!r}{suggest_name(name, NAMES)}"
    return f"{name}: {error_words(error, shows_value=True)}"
