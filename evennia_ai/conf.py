"""The settings: the only place that reads them, and the environment.

Every name begins with `EVENNIA_AI_`. The address and the model may also come from environment
variables of the same names, which win; the API key comes from the environment alone and is never
in the settings, the database, a log or the `repr` of anything.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import lru_cache
from math import isfinite
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.signals import setting_changed

from evennia_ai.cards.limits import CardLimits
from evennia_ai.lorebook.rules import ActivationRules, read_rules
from evennia_ai.prompt.components import is_plain_int
from evennia_ai.prompt.errors import EvenniaAIError, FormatError
from evennia_ai.prompt.expansion import LAYOUTS, Layout

PREFIX: Final = "EVENNIA_AI_"
# One player's shouted keywords shall not crowd out what others wake.
_LORE: Final = {"speaker_share_percent": 50, "speaker_matches": 40}
_NOT_FOR_GAMES: Final = ("dice", "dry_run")
_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


class SettingError(EvenniaAIError):
    """A setting has a value it cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """All settings of evennia_ai, checked.

    An empty `base_url` means that no endpoint is configured and the offline responder answers.
    `card_folder` is absolute: builders import cards from there and from nowhere else. `lore_facts`
    are dotted paths of the game's own functions (`evennia_ai.game.facts`).
    """

    base_url: str
    model: str
    api_key: str = field(repr=False)
    model_timeout_seconds: float
    context_tokens: int
    reply_tokens: int
    layout: Layout
    max_concurrent_calls: int
    queue_limit: int
    hop_limit: int
    cooldown_seconds: float
    engagement_seconds: float
    refresh_seconds: float
    fallback_line: str
    card_folder: Path
    max_source_characters: int
    card_limits: CardLimits
    lore: ActivationRules
    lore_facts: tuple[str, ...]
    keep_turn_days: int

    @property
    def is_offline(self) -> bool:
        """Whether no endpoint is configured."""
        return not self.base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A setting with a wrong value; `id` is that of its system check."""

    id: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    id: str
    field: str
    default: object
    wanted: str
    accepts: Callable[[Any], bool]
    from_environment: bool = False
    problem: Callable[[Any], str] | None = None

    @property
    def name(self) -> str:
        return PREFIX + self.field.upper()

    def value(self) -> Any:
        if self.from_environment and self.name in os.environ:
            return os.environ[self.name]
        return getattr(settings, self.name, self.default)


def _whole(low: int, high: int = 10**9) -> Callable[[Any], bool]:
    return lambda value: is_plain_int(value) and low <= value <= high


def _seconds(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and isfinite(value) and value >= 0


def _some_seconds(value: Any) -> bool:
    return _seconds(value) and value > 0


def _line(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= 500 and "\n" not in value


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _paths(value: Any) -> bool:
    listed = isinstance(value, list | tuple)
    return listed and all(isinstance(path, str) and _DOTTED.fullmatch(path) for path in value)


def _lore_rules(given: Any) -> ActivationRules:
    """The rules of lore with what the game sets; FormatError names what it cannot set."""
    where = f"{PREFIX}LORE"
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    for name in _NOT_FOR_GAMES:
        if name in given:
            raise FormatError("setting", f"{where}.{name}: is for scenarios alone; take it out")
    return read_rules({**_LORE, **given}, where=where)


def _card_limits(given: Any) -> CardLimits:
    """The limits of cards with what the game sets; FormatError names what it cannot set."""
    where = f"{PREFIX}CARD_LIMITS"
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    known = [field.name for field in fields(CardLimits)]
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise FormatError("setting", f"{where}: there is no limit {name!r}{meant}")
        if not is_plain_int(value):
            raise FormatError("setting", f"{where}.{name}: must be a whole number, not {value!r}")
    try:
        return CardLimits(**given)
    except FormatError as error:
        raise FormatError("setting", f"{where}: {error.message}") from error


def _problem_of(read: Callable[[Any], object]) -> Callable[[Any], str]:
    """What `read` refuses a value for, "" where it does not."""

    def problem(given: Any) -> str:
        try:
            read(given)
        except FormatError as error:
            return error.message
        return ""

    return problem


_lore_problem: Final = _problem_of(_lore_rules)
_limits_problem: Final = _problem_of(_card_limits)


def _address(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    if not value:
        return True
    try:
        parts = urlsplit(value)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        return known and parts.username is None and parts.password is None and not parts.query
    except ValueError:
        return False


# The ids of the checks are documented: a setting keeps its id.
_SETTINGS: Final = (
    _Setting(
        id="E001",
        field="base_url",
        default="",
        wanted='an http or https address without a name, a password or a query, or ""',
        accepts=_address,
        from_environment=True,
    ),
    _Setting(
        id="E002",
        field="model",
        default="",
        wanted="the name of a model, as text",
        accepts=_text,
        from_environment=True,
    ),
    _Setting(
        id="E003",
        field="api_key_env",
        default="EVENNIA_AI_API_KEY",
        wanted="the name of an environment variable",
        accepts=lambda value: isinstance(value, str) and value.isidentifier(),
    ),
    _Setting(
        id="E004",
        field="model_timeout_seconds",
        default=60.0,
        wanted="a number of seconds over 0",
        accepts=_some_seconds,
    ),
    _Setting(
        id="E005",
        field="context_tokens",
        default=8192,
        wanted="a whole number from 256 on",
        accepts=_whole(256),
    ),
    _Setting(
        id="E006",
        field="reply_tokens",
        default=400,
        wanted="a whole number from 1 on",
        accepts=_whole(1),
    ),
    _Setting(
        id="E007",
        field="layout",
        default="cache",
        wanted='"cache" or "classic"',
        accepts=lambda value: value in LAYOUTS,
    ),
    _Setting(
        id="E008",
        field="max_concurrent_calls",
        default=4,
        wanted="a whole number from 1 to 1000",
        accepts=_whole(1, 1000),
    ),
    _Setting(
        id="E009",
        field="queue_limit",
        default=128,
        wanted="a whole number from 1 on",
        accepts=_whole(1),
    ),
    _Setting(
        id="E010",
        field="hop_limit",
        default=3,
        wanted="a whole number, 0 or more",
        accepts=_whole(0),
    ),
    _Setting(
        id="E011",
        field="cooldown_seconds",
        default=1.0,
        wanted="a number of seconds, 0 or more",
        accepts=_seconds,
    ),
    _Setting(
        id="E012",
        field="engagement_seconds",
        default=60.0,
        wanted="a number of seconds, 0 or more",
        accepts=_seconds,
    ),
    _Setting(
        id="E013",
        field="refresh_seconds",
        default=30.0,
        wanted="a number of seconds over 0",
        accepts=_some_seconds,
    ),
    _Setting(
        id="E014",
        field="fallback_line",
        default="I am lost in thought just now. Ask me again in a moment.",
        wanted="one line of text, at most 500 characters",
        accepts=_line,
    ),
    _Setting(
        id="E015",
        field="card_folder",
        default="world/cards",
        wanted="a folder; a relative one counts from the game's folder",
        accepts=lambda value: isinstance(value, str | Path) and bool(str(value)),
    ),
    _Setting(
        id="E016",
        field="max_source_characters",
        default=4_000_000,
        wanted="a whole number from 1000 on",
        accepts=_whole(1000),
    ),
    _Setting(
        id="E019",
        field="lore",
        default=_LORE,
        wanted="a dictionary with rules of lore, as settings.lore of a scenario has them",
        accepts=lambda value: not _lore_problem(value),
        problem=_lore_problem,
    ),
    _Setting(
        id="E020",
        field="lore_facts",
        default=[],
        wanted='a list of dotted paths of functions, such as ["world.facts.of_the_tide"]',
        accepts=_paths,
    ),
    _Setting(
        id="E021",
        field="card_limits",
        default={},
        wanted='a dictionary of limits, such as {"file_bytes": 8388608}',
        accepts=lambda value: not _limits_problem(value),
        problem=_limits_problem,
    ),
    _Setting(
        id="E022",
        field="keep_turn_days",
        default=0,
        wanted="a whole number of days, 0 to keep everything",
        accepts=_whole(0),
    ),
)


@lru_cache(maxsize=1)
def conf() -> Conf:
    """The settings as values, read once; SettingError names the first wrong one."""
    for problem in problems():
        raise SettingError(f"{problem.message} {problem.hint}")
    values = {setting.field: setting.value() for setting in _SETTINGS}
    api_key = os.environ.get(values.pop("api_key_env"), "")
    folder = Path(getattr(settings, "GAME_DIR", "."), values.pop("card_folder"))
    return Conf(
        api_key=api_key,
        card_folder=folder.absolute(),
        lore=_lore_rules(values.pop("lore")),
        lore_facts=tuple(values.pop("lore_facts")),
        card_limits=_card_limits(values.pop("card_limits")),
        **values,
    )


def problems() -> list[Problem]:
    """What is wrong with the settings, in the order of the ids of the checks."""
    found = [_problem(setting) for setting in _SETTINGS if not setting.accepts(setting.value())]
    return found or _disagreements()


def unknown_names() -> list[tuple[str, str]]:
    """Settings with our prefix that we do not know, each with a near known name or ""."""
    known = [setting.name for setting in _SETTINGS]
    given = [name for name in dir(settings) if name.startswith(PREFIX) and name not in known]
    return [(name, next(iter(get_close_matches(name, known, n=1)), "")) for name in given]


def _problem(setting: _Setting) -> Problem:
    hint = f"It must be {setting.wanted}."
    if setting.problem is not None:
        return Problem(id=setting.id, message=f"{setting.problem(setting.value())}.", hint=hint)
    # An address with a password in it must not be repeated in a log.
    shown = "" if setting.field == "base_url" else f" {setting.value()!r}"
    here = " (from the environment)" if setting.from_environment else ""
    place = here if here and setting.name in os.environ else ""
    return Problem(
        id=setting.id,
        message=f"{setting.name}{place}{shown} is not allowed.",
        hint=hint,
    )


def _disagreements() -> list[Problem]:
    """Values that are right alone and wrong together."""
    value = {setting.field: setting.value() for setting in _SETTINGS}
    found = []
    if value["base_url"] and not value["model"]:
        found.append(
            Problem(
                id="E017",
                message="EVENNIA_AI_BASE_URL is set and EVENNIA_AI_MODEL is not.",
                hint="Name the model to ask for at that address.",
            )
        )
    if value["reply_tokens"] >= value["context_tokens"]:
        found.append(
            Problem(
                id="E018",
                message="EVENNIA_AI_REPLY_TOKENS is not smaller than EVENNIA_AI_CONTEXT_TOKENS.",
                hint="The prompt gets what the reply leaves: leave it some.",
            )
        )
    return found


def _forget(*, setting: str, **_: Any) -> None:
    if setting.startswith(PREFIX) or setting == "GAME_DIR":
        conf.cache_clear()


setting_changed.connect(_forget, dispatch_uid="evennia_ai.conf")
