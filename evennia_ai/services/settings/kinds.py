"""What a setting may be: kinds of several of them, and readers of those that are dictionaries.

Types with bounds for pydantic. `evennia_ai.services.settings.game` says which setting is of which
kind.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

from pydantic import Field, PlainValidator, ValidationInfo

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import UNBOUNDED, Must, custom_error, list_names, read_fields
from evennia_ai.engine.knowledge.settings import SearchBudget, read_search_budget
from evennia_ai.engine.lorebook.rules import ActivationRules, read_rules
from evennia_ai.engine.prompt.assembly.rules import read_assembly
from evennia_ai.engine.text.word_forms import LANGUAGES, Languages
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.services.net.http import is_address
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.wiki.site import Site, read_wikis, site_of

PREFIX: Final = "EVENNIA_AI_"
GLOBAL_TRACES: Final = "global"
MOST_WRITTEN: Final = 8000
"""More characters than this are not taken from a model, whatever a game sets."""
# One player's shouted keywords shall not crowd out what others wake.
GAME_LORE: Final = {"speaker_share_percent": 50, "speaker_matches": 40}
USUAL_PROVIDERS: Final = [
    *("kb_meta_prompt", "speaker", "relation", "acquaintance", "shown"),
    *("place", "goals", "elsewhere"),
]
_NOT_FOR_GAMES: Final = ("dice", "dry_run")
_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")

LogMode = Literal["", "preview", "full"]
TimeSuffix = Literal["", "real", "game"]
# A setting says True; an environment variable can only say "1".
_LOG_MODES: Final[Mapping[object, LogMode]] = {
    **dict.fromkeys((False, "", "0", "false", "False", "off"), ""),
    **dict.fromkeys((True, "1", "true", "True", "on", "preview"), "preview"),
    "full": "full",
}
_Read_co = TypeVar("_Read_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is told of a setting beside its type."""

    id: str
    """The id of its check, which is documented and stays."""
    default: Any
    wanted: str = ""
    """Ends the sentence "It must be ...", where the type does not say it."""
    name: str = ""
    """In lower case without the prefix, where the field has another name."""
    from_environment: bool = False
    variable: str = ""
    """Another name of its environment variable."""
    is_shown: bool = True
    """True if a wrong value is repeated in a log; there may be a password in an address."""

    @property
    def full_name(self) -> str:
        """The name in the game's settings."""
        return PREFIX + self.name.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    """Where traces go."""

    to: str = ""
    """"" nowhere, "global", or the dotted path of what makes an exporter."""
    with_content: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingLimits:
    """What one NPC may write."""

    characters: Annotated[int, Field(ge=1, le=MOST_WRITTEN)] = 2000
    """How long one writing may be."""
    most: Annotated[int, Field(ge=0, le=10**6)] = 20
    """How many writings of it there may be in the game at one time; 0: it writes nothing."""
    a_day: Annotated[int, Field(ge=0, le=10**4)] = 5
    """How many it may begin in 24 hours, those that are gone since among them."""


class Reader(Protocol[_Read_co]):
    """Reads a dictionary of settings; its FormatError begins with `where` they stand."""

    def __call__(self, given: Any, *, where: str) -> _Read_co: ...


def read_by(read: Reader[object], *, name: str = "") -> PlainValidator:
    """A field that this reader makes of a dictionary; `name` where the setting has another one."""

    def validator(given: Any, info: ValidationInfo) -> object:
        where = PREFIX + (name or info.field_name or "").upper()
        try:
            return read(given, where=where)
        except FormatError as error:
            raise custom_error(error.message) from error

    return PlainValidator(validator)


def _is_line(value: str) -> bool:
    return 0 < len(value.strip()) <= 500 and "\n" not in value


def _is_path(value: object) -> bool:
    return isinstance(value, str) and _DOTTED.fullmatch(value) is not None


def _is_name_or_path(value: object) -> bool:
    return isinstance(value, str) and (value.isidentifier() or _is_path(value))


def _list_of(is_one: Callable[[object], bool]) -> PlainValidator:
    """A list, as a tuple, of which this is true of each."""

    def validator(value: Any) -> tuple[str, ...]:
        if isinstance(value, list | tuple) and all(is_one(one) for one in value):
            return tuple(value)
        raise custom_error("must be a list")

    return PlainValidator(validator)


def _folder(value: Any, info: ValidationInfo) -> Path:
    """The folder in that of the game, unless it is absolute."""
    if isinstance(value, str | Path) and str(value):
        folder: Path = info.data["game_folder"] / value
        return folder
    raise custom_error("must be a folder")


def _log_mode(value: Any) -> LogMode:
    if isinstance(value, bool | str) and value in _LOG_MODES:
        return _LOG_MODES[value]
    raise custom_error("must be a mode")


def _budget(given: Any) -> SearchBudget:
    """The budget; one that contradicts itself is not used, which is a doubt alone."""
    if isinstance(given, Mapping):
        return read_search_budget(given)[0]
    raise custom_error("must be a dictionary")


WholeNumber = Annotated[int, Field(ge=0, le=UNBOUNDED)]
Count = Annotated[int, Field(ge=1, le=UNBOUNDED)]
Seconds = Annotated[int | float, Field(ge=0), Must("a number of seconds, 0 or more")]
SomeSeconds = Annotated[int | float, Field(gt=0), Must("a number of seconds over 0")]
Line = Annotated[str, Must("one line of text, at most 500 characters", _is_line)]
Address = Annotated[str, Must("an address", lambda value: not value or is_address(value))]
SessionHeader = Annotated[
    str,
    Must(
        'the name of a header that begins with x-, such as "x-session-id", or "" for none',
        lambda name: not name or re.fullmatch(r"x-(?!api-key)[a-z0-9-]{1,60}", name, re.I),
    ),
]
Variable = Annotated[str, Must("the name of an environment variable", str.isidentifier)]
DottedPath = Annotated[str, Must("a dotted path", _is_path)]
PathOrNone = Annotated[str, Must("a dotted path", lambda value: not value or _is_path(value))]
Paths = Annotated[tuple[str, ...], _list_of(_is_path)]
Texts = Annotated[tuple[str, ...], _list_of(lambda one: isinstance(one, str) and bool(one.strip()))]
NamesOrPaths = Annotated[tuple[str, ...], _list_of(_is_name_or_path)]
Folder = Annotated[
    Path, PlainValidator(_folder), Must("a folder; a relative one counts from the game's folder")
]
Logging = Annotated[LogMode, PlainValidator(_log_mode)]
Budget = Annotated[SearchBudget, PlainValidator(_budget)]


def read_lore(given: Any, *, where: str) -> ActivationRules:
    """The rules of lore with what the game sets; FormatError names what it cannot set."""
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    for name in _NOT_FOR_GAMES:
        if name in given:
            raise FormatError("setting", f"{where}.{name}: is for scenarios alone; take it out")
    return read_rules({**GAME_LORE, **given}, where=where)


def read_assembly_written(given: Any, *, where: str) -> Mapping[str, Any]:
    """The rules of an assembly as the game writes them, all of which can be.

    They are read where the rules of lore are known, which may decide one of them. FormatError
    names what cannot be.
    """
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    read_assembly(given, where=where)
    return dict(given)


def read_card_limits(given: Any, *, where: str) -> CardLimits:
    """The limits of cards with what the game sets; FormatError names what it cannot set."""
    try:
        return read_fields(CardLimits, given, where=where, what="limit ")
    except FormatError as error:
        told = error.message if error.message.startswith(where) else f"{where}: {error.message}"
        raise FormatError("setting", told) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _WrittenTracing:
    to: Annotated[
        str,
        Must(
            '"global" or the dotted path of an exporter',
            lambda to: to in ("", GLOBAL_TRACES) or _is_path(to),
        ),
    ] = ""
    content: bool = False


def read_tracing(given: Any, *, where: str) -> Tracing:
    """Where traces go; FormatError names what cannot be set."""
    read = read_fields(_WrittenTracing, given, where=where, what="", hint=list_names)
    return Tracing(to=read.to, with_content=read.content)


def read_writing_limits(given: Any, *, where: str) -> WritingLimits:
    """The limits in the dictionary `given`; FormatError names the first that cannot be."""
    return read_fields(WritingLimits, given, where=where)


def _sites(given: Any, info: ValidationInfo) -> dict[str, Site]:
    """The wikis that are knowledge bases, each with its password where the environment has it."""
    environment: Mapping[str, str] = (info.context or {}).get("environment", {})
    try:
        wikis = read_wikis(given, where=f"{PREFIX}KNOWLEDGE_WIKIS")
    except FormatError as error:
        raise custom_error(error.message) from error
    return {
        key: site_of(key, said, password=SecretText(environment.get(said["password_env"], "")))
        for key, said in wikis.items()
    }


def _languages(given: Any) -> Languages:
    """Codes of languages, each once."""
    if not isinstance(given, list | tuple) or not all(isinstance(code, str) for code in given):
        raise custom_error("must be a list of codes of languages")
    unknown = [code for code in given if code not in LANGUAGES]
    if unknown:
        raise custom_error(f"{unknown[0]!r} is none of {', '.join(LANGUAGES)}")
    return tuple(dict.fromkeys(given))


SomeLanguages = Annotated[Languages, PlainValidator(_languages)]
Wikis = Annotated[Mapping[str, Site], PlainValidator(_sites)]
