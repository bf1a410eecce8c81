"""Types of settings, with limits for pydantic, and readers of settings that are dictionaries.

`evennia_ai.services.settings.game` gives each setting its type.
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
from evennia_ai.engine.prompt.language import language_named
from evennia_ai.engine.text.phrases import translatable
from evennia_ai.engine.text.word_forms import LANGUAGES, Languages
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.services.net.http import is_address
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.wiki.site import Site, read_wikis, site_of

PREFIX: Final = "EVENNIA_AI_"
GLOBAL_TRACES: Final = "global"
MOST_WRITTEN: Final = 8000
"""The most characters of one text that an NPC writes. No setting can raise this."""
# Each speaker has a limit. So one player who shouts many keywords cannot displace the entries of
# others.
GAME_LORE: Final = {"speaker_share_percent": 50, "speaker_matches": 40}
USUAL_PROVIDERS: Final = [
    *("kb_meta_prompt", "speaker", "relation", "acquaintance", "shown"),
    *("place", "belongings", "goals", "elsewhere"),
]
_NOT_FOR_GAMES: Final = ("dice", "dry_run")
_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")

LogMode = Literal["", "preview", "full"]
TimeSuffix = Literal["", "real", "game"]
# A setting can be True or False; an environment variable is a text such as "1".
_LOG_MODES: Final[Mapping[object, LogMode]] = {
    **dict.fromkeys((False, "", "0", "false", "False", "off"), ""),
    **dict.fromkeys((True, "1", "true", "True", "on", "preview"), "preview"),
    "full": "full",
}
_Read_co = TypeVar("_Read_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Setting:
    """The properties of a setting that its type does not contain."""

    id: str
    """The id of the setting's system check, without a prefix.

    It is documented and never changes.
    """
    default: Any
    wanted: str = ""
    """The end of the sentence "It must be ..." in error messages. "" if the type provides it."""
    name: str = ""
    """The name of the setting, in lower case without the prefix, if the field has another name."""
    from_environment: bool = False
    variable: str = ""
    """A second name for the setting's environment variable."""
    is_shown: bool = True
    """True if a log may show a wrong value.

    It may not for addresses, which may contain a password.
    """

    @property
    def full_name(self) -> str:
        """The name that the setting has in the game's settings."""
        return PREFIX + self.name.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    """Where traces are sent."""

    to: str = ""
    """"" for nowhere, "global", or the dotted path of a function that makes an exporter."""
    with_content: bool = False


def _is_path(value: object) -> bool:
    return isinstance(value, str) and _DOTTED.fullmatch(value) is not None


def _is_line(value: str) -> bool:
    return 0 < len(value.strip()) <= 500 and "\n" not in value


def _is_line_or_empty(value: str) -> bool:
    return not value or _is_line(value)


LineOrNone = Annotated[
    str, Must('one line of text, at most 500 characters, or "" for none', _is_line_or_empty)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What players are told about NPCs that speak through a model, in the language of each.

    `{npc}` becomes the NPC's name. An empty line is not shown.
    """

    meeting: LineOrNone = translatable(
        "(OOC) {npc} speaks through a language model, an AI. To decide about it: help ai off"
    )
    """The line before the first words of a kind of NPC that a player meets."""
    mark: LineOrNone = translatable("(OOC) Speaks through a language model, an AI.")
    """The last line of `look <npc>`."""
    login: LineOrNone = translatable(
        "(OOC) Some characters here speak through a language model, an AI. To decide about it:"
        " help ai off"
    )
    """The line that a player reads after entering the game."""
    answer: LineOrNone = translatable(
        "(OOC) {npc} is not a person. A language model, an AI, writes what {npc} says."
    )
    """What a player reads who asks out of character whether the NPC is a machine."""


NOTHING_DISCLOSED: Final = Disclosure(meeting="", mark="", login="", answer="")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRules:
    """The functions of the game that may withhold what is said, and what happens without them."""

    heard: Annotated[
        str, Must('the dotted path of a function, or ""', lambda path: not path or _is_path(path))
    ] = ""
    """The function for what players say to NPCs."""
    said: Annotated[
        str, Must('the dotted path of a function, or ""', lambda path: not path or _is_path(path))
    ] = ""
    """The function for what a model answers."""
    seconds: Annotated[int | float, Field(gt=0, le=60)] = 2.0
    """How long a verdict may take."""
    on_failure: Literal["withhold", "pass"] = "withhold"
    """What happens to the words if a function fails or takes longer."""
    line: LineOrNone = translatable("Let us speak of something else.")
    """What the NPC says instead of a withheld answer."""
    gesture: LineOrNone = translatable("shakes the head and does not answer.")
    """What the NPC does after withheld words of a player. Only that player sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingLimits:
    """Limits on what one NPC may write."""

    characters: Annotated[int, Field(ge=1, le=MOST_WRITTEN)] = 2000
    """The most characters of one text."""
    most: Annotated[int, Field(ge=0, le=10**6)] = 20
    """How many texts of the NPC may exist at the same time; 0: it writes nothing."""
    a_day: Annotated[int, Field(ge=0, le=10**4)] = 5
    """How many texts it may begin in 24 hours. Texts that no longer exist are counted too."""


class Reader(Protocol[_Read_co]):
    """A function that reads a dictionary of settings.

    It raises FormatError with a message that begins with `where`.
    """

    def __call__(self, given: Any, *, where: str) -> _Read_co: ...


def read_by(read: Reader[object], *, name: str = "") -> PlainValidator:
    """Return a pydantic validator that reads a dictionary with the function `read`.

    Args:
        name: The name of the setting, if it differs from the name of the field.
    """

    def validator(given: Any, info: ValidationInfo) -> object:
        where = PREFIX + (name or info.field_name or "").upper()
        try:
            return read(given, where=where)
        except FormatError as error:
            raise custom_error(error.message) from error

    return PlainValidator(validator)


def _is_name_or_path(value: object) -> bool:
    return isinstance(value, str) and (value.isidentifier() or _is_path(value))


def _list_of(is_one: Callable[[object], bool]) -> PlainValidator:
    """Return a validator for a list whose items all pass `is_one`.

    It turns the list into a tuple.
    """

    def validator(value: Any) -> tuple[str, ...]:
        if isinstance(value, list | tuple) and all(is_one(one) for one in value):
            return tuple(value)
        raise custom_error("must be a list")

    return PlainValidator(validator)


def _folder(value: Any, info: ValidationInfo) -> Path:
    """Return a folder as an absolute path. A relative folder is in the game's folder."""
    if isinstance(value, str | Path) and str(value):
        folder: Path = info.data["game_folder"] / value
        return folder
    raise custom_error("must be a folder")


def _log_mode(value: Any) -> LogMode:
    if isinstance(value, bool | str) and value in _LOG_MODES:
        return _LOG_MODES[value]
    raise custom_error("must be a mode")


def _budget(given: Any) -> SearchBudget:
    """Return a search budget.

    A contradictory budget is ignored, and `doubtful` warns of it.
    """
    if isinstance(given, Mapping):
        return read_search_budget(given)[0]
    raise custom_error("must be a dictionary")


def _language(value: Any) -> str:
    """Return the code of a language, "" for none."""
    code = language_named(value) if isinstance(value, str) else ""
    if value == "" or code:
        return code
    raise custom_error("must be the code of a known language")


LanguageOrNone = Annotated[str, PlainValidator(_language)]
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
    """Return the rules of lorebooks, with the game's changes to them.

    Raises:
        FormatError: a value is not allowed.
    """
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    for name in _NOT_FOR_GAMES:
        if name in given:
            raise FormatError("setting", f"{where}.{name}: is only for scenarios; remove it")
    return read_rules({**GAME_LORE, **given}, where=where)


def read_assembly_written(given: Any, *, where: str) -> Mapping[str, Any]:
    """Return the rules of an assembly as the game's settings have them, after a check.

    They are evaluated later, because the rules of lore decide one of them.

    Raises:
        FormatError: a value is not allowed.
    """
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    read_assembly(given, where=where)
    return dict(given)


def read_card_limits(given: Any, *, where: str) -> CardLimits:
    """Return the limits of card files, with the game's changes to them.

    Raises:
        FormatError: a value is not allowed.
    """
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
    """Return where traces are sent.

    Raises:
        FormatError: a value is not allowed.
    """
    read = read_fields(_WrittenTracing, given, where=where, what="", hint=list_names)
    return Tracing(to=read.to, with_content=read.content)


def read_disclosure(given: Any, *, where: str) -> Disclosure:
    """Return what players are told: all of it for True, nothing for False, or with own lines.

    Raises:
        FormatError: a value is not allowed.
    """
    if isinstance(given, bool):
        return Disclosure() if given else NOTHING_DISCLOSED
    return read_fields(Disclosure, given, where=where, what="line ", hint=list_names)


def read_filter(given: Any, *, where: str) -> FilterRules:
    """Return the game's filter.

    Raises:
        FormatError: a value is not allowed.
    """
    return read_fields(FilterRules, given, where=where, what="", hint=list_names)


def read_writing_limits(given: Any, *, where: str) -> WritingLimits:
    """Return how much an NPC may write, with the game's changes.

    Raises:
        FormatError: a value is not allowed.
    """
    return read_fields(WritingLimits, given, where=where)


def _sites(given: Any, info: ValidationInfo) -> dict[str, Site]:
    """Return the wikis that are knowledge bases, with their passwords from the environment."""
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
    """Return codes of languages, without repetitions."""
    if not isinstance(given, list | tuple) or not all(isinstance(code, str) for code in given):
        raise custom_error("must be a list of codes of languages")
    unknown = [code for code in given if code not in LANGUAGES]
    if unknown:
        raise custom_error(f"{unknown[0]!r} is none of {', '.join(LANGUAGES)}")
    return tuple(dict.fromkeys(given))


SomeLanguages = Annotated[Languages, PlainValidator(_languages)]
Wikis = Annotated[Mapping[str, Site], PlainValidator(_sites)]
