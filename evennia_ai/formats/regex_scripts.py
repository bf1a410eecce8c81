"""SillyTavern's regex scripts in files: read, checked, edited and written without loss.

Cards and presets have a list of scripts in `extensions.regex_scripts`. A script or a list of
scripts can also be a file of its own. Reading is lenient: a field with an impossible value gets its
default and a notice. An edit changes one member of the JSON object and keeps all others.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import Finding, one_line, parse_json
from evennia_ai.engine.foreign.fields import error_words
from evennia_ai.engine.lorebook.scan.regex.pattern import Refused
from evennia_ai.engine.lorebook.scan.regex.replacing import Replaced
from evennia_ai.engine.regex_scripts import (
    ORIGIN,
    Placement,
    RegexScript,
    groups_used,
    pattern_of,
    split_find,
)

KIND: Final = "regex script"
MEMBER: Final = "regex_scripts"
MOST_SCRIPTS: Final = 500
"""The most scripts of one card, one preset or the game."""
MOST_CHARACTERS: Final = 500_000
"""The most characters of one script as JSON. Replacements with whole web pages have 100,000."""
_LONGEST_NAME: Final = 120

PLACEMENTS: Final[Mapping[int, Placement]] = {
    1: "user_input",
    2: "ai_output",
    3: "slash_command",
    5: "world_info",
    6: "reasoning",
}
_OLD_DISPLAY: Final = 0
_OLD_SEND_AS: Final = 4
IN_A_GAME: Final = frozenset[Placement]({"user_input", "ai_output", "world_info"})
"""The placements of texts that a game has."""
FILLS: Final[Mapping[str, int]] = {"none": 0, "raw": 1, "escaped": 2}


# As in JavaScript, any value that is not empty counts as true.
_Flag = Annotated[bool, BeforeValidator(bool)]


class ScriptFile(BaseModel):
    """A regex script as SillyTavern writes it. Other members of the object are ignored here."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    name: str = Field(default="", alias="scriptName")
    find: str = Field(default="", alias="findRegex")
    replacement: str = Field(default="", alias="replaceString")
    trim: tuple[str, ...] = Field(default=(), alias="trimStrings", strict=False)
    placement: tuple[int, ...] = Field(default=(), strict=False)
    disabled: _Flag = False
    display_only: _Flag = Field(default=False, alias="markdownOnly")
    prompt_only: _Flag = Field(default=False, alias="promptOnly")
    run_on_edit: _Flag = Field(default=False, alias="runOnEdit")
    fills_find: int = Field(default=0, alias="substituteRegex", strict=False, ge=0, le=2)
    """0: macros in `find` are not expanded; 1 and 2: they are."""
    min_depth: int | None = Field(default=None, alias="minDepth", strict=False)
    max_depth: int | None = Field(default=None, alias="maxDepth", strict=False)


@dataclass(frozen=True, slots=True)
class ReadScript:
    """A script of a file, with the JSON value that it was read from."""

    name: str
    """The name of the script, different from those of all others in its list."""
    file: ScriptFile
    raw: Mapping[str, Any]
    notices: tuple[str, ...] = ()

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placements that SillyTavern 1.19 knows, after its own updates of old scripts."""
        numbers = [*dict.fromkeys(self.file.placement)]
        if numbers == [_OLD_DISPLAY]:
            return tuple(PLACEMENTS.values())
        if numbers == [_OLD_SEND_AS]:
            return ("slash_command",)
        return tuple(PLACEMENTS[number] for number in numbers if number in PLACEMENTS)

    def for_engine(self, where: str) -> RegexScript:
        """Return the script as composing uses it. `where` is the place of its list."""
        file = self.file
        is_old_display = _OLD_DISPLAY in file.placement
        low, high = file.min_depth, file.max_depth
        return RegexScript(
            origin=f"{ORIGIN}{where}/{self.name}",
            find=file.find,
            replacement=file.replacement,
            trim=file.trim,
            placements=self.placements,
            prompt_only=file.prompt_only or is_old_display,
            display_only=file.display_only or is_old_display,
            fills_find=file.fills_find > 0,
            # SillyTavern ignores a lower bound below -1 and a negative upper bound.
            min_depth=None if low is None or low < 0 else low,
            max_depth=None if high is None or high < 0 else high,
        )


def scripts_in(extensions: Any) -> list[Any]:
    """Return the raw scripts in the member `extensions` of a card or a preset."""
    listed = extensions.get(MEMBER) if isinstance(extensions, Mapping) else None
    return listed if isinstance(listed, list) else []


def preset_scripts(source: Mapping[str, Any]) -> list[Any]:
    """Return the raw scripts in the JSON object of a preset's file."""
    listed = source.get(MEMBER)
    return scripts_in(source.get("extensions")) or (listed if isinstance(listed, list) else [])


def with_preset_scripts(source: Mapping[str, Any], listed: Sequence[Any]) -> dict[str, Any]:
    """Return the JSON object of a preset's file with other scripts; all else stays as it is."""
    extensions = source.get("extensions")
    if not scripts_in(extensions) and isinstance(source.get(MEMBER), list):
        return {**source, MEMBER: [*listed]}
    known = extensions if isinstance(extensions, Mapping) else {}
    return {**source, "extensions": {**known, MEMBER: [*listed]}}


def find_script(scripts: Sequence[ReadScript], wanted: str) -> int | None:
    """Return the index of the script with this name or number; None if there is none."""
    plain = wanted.strip().casefold()
    for at, script in enumerate(scripts):
        if script.name.casefold() == plain:
            return at
    number = int(plain) if plain.isascii() and plain.isdecimal() and len(plain) < 5 else 0
    return number - 1 if 0 < number <= len(scripts) else None


def read_scripts(listed: Sequence[Any]) -> tuple[ReadScript, ...]:
    """Read a list of raw scripts. Items that are no objects are left out."""
    found: list[ReadScript] = []
    taken: set[str] = set()
    for raw in listed[:MOST_SCRIPTS]:
        if not isinstance(raw, Mapping):
            continue
        file, notices = _read_fields(raw)
        plain = " ".join(one_line(file.name).split())[:_LONGEST_NAME].replace("=", "-")
        name = base = plain or "script"
        copies = 1
        while name.casefold() in taken:
            copies += 1
            name = f"{base} #{copies}"
        taken.add(name.casefold())
        found.append(ReadScript(name, file, raw, notices))
    return tuple(found)


def _read_fields(raw: Mapping[str, Any]) -> tuple[ScriptFile, tuple[str, ...]]:
    """Return the fields of a script, and a notice for each value that is replaced by a default."""
    given = {name: value for name, value in raw.items() if value is not None}
    notices: list[str] = []
    while True:
        try:
            return ScriptFile.model_validate(given), tuple(notices)
        except ValidationError as error:
            for problem in error.errors():
                name = str(problem["loc"][0])
                if name in given:
                    del given[name]
                    notices.append(f"{name}: {error_words(problem)}; the default is used")


def running_scripts(listed: Sequence[Any], where: str) -> tuple[RegexScript, ...]:
    """Return the scripts of a list that are not disabled, as composing uses them."""
    read = read_scripts(listed)
    return tuple(one.for_engine(where) for one in read if not one.file.disabled and one.file.find)


def read_script_file(data: bytes | str, *, where: str) -> tuple[dict[str, Any], ...]:
    """Return the scripts in a file: one script, or a list of scripts.

    Raises:
        FormatError: the file is not JSON, has no script, or is too long.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(KIND, f"{where}: the file is not text in UTF-8") from error
    value, _ = parse_json(text, kind=KIND, where=where)
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(one, dict) and "findRegex" in one for one in listed):
        raise FormatError(
            KIND,
            f"{where}: has no regex script; a script is a JSON object with `scriptName`,"
            " `findRegex` and `replaceString`, and a file has one script or a list of them",
        )
    if len(listed) > MOST_SCRIPTS:
        raise FormatError(KIND, f"{where}: has {len(listed)} scripts, more than {MOST_SCRIPTS}")
    for one in listed:
        check_length(one)
    return tuple(listed)


def check_length(raw: Mapping[str, Any]) -> None:
    """Check that a script is not too long.

    Raises:
        FormatError: it is.
    """
    if len(json.dumps(raw, ensure_ascii=False)) > MOST_CHARACTERS:
        name = one_line(str(raw.get("scriptName")))[:60]
        raise FormatError(KIND, f"script '{name}' has more than {MOST_CHARACTERS:,} characters")


def dump_script(raw: Mapping[str, Any]) -> str:
    """Return a script as the text of a file, as SillyTavern writes it."""
    return json.dumps(raw, ensure_ascii=False, allow_nan=False, indent=4)


class _Member(NamedTuple):
    """A field that builders edit: its member in the file, and the kind of its value."""

    member: str
    kind: Literal["text", "flag", "depth", "placement", "trim", "macros"]


FIELDS: Final[Mapping[str, _Member]] = {
    "name": _Member("scriptName", "text"),
    "find": _Member("findRegex", "text"),
    "replace": _Member("replaceString", "text"),
    "trim": _Member("trimStrings", "trim"),
    "placement": _Member("placement", "placement"),
    "prompt_only": _Member("promptOnly", "flag"),
    "display_only": _Member("markdownOnly", "flag"),
    "disabled": _Member("disabled", "flag"),
    "run_on_edit": _Member("runOnEdit", "flag"),
    "macros": _Member("substituteRegex", "macros"),
    "min_depth": _Member("minDepth", "depth"),
    "max_depth": _Member("maxDepth", "depth"),
}
"""The fields of a script by the words that builders type."""


def new_script(name: str) -> dict[str, Any]:
    """Return a new script that searches nothing yet."""
    return {
        "scriptName": name,
        "findRegex": "",
        "replaceString": "",
        "trimStrings": [],
        "placement": [2],
        "disabled": False,
        "markdownOnly": False,
        "promptOnly": True,
        "runOnEdit": False,
        "substituteRegex": 0,
        "minDepth": None,
        "maxDepth": None,
    }


def field_word(typed: str) -> str:
    """Return the name of a field as `FIELDS` spells it, for example "min_depth" for "Min depth"."""
    return typed.strip().lower().replace(" ", "_").replace("-", "_")


def with_field(raw: Mapping[str, Any], word: str, typed: str) -> dict[str, Any]:
    """Return a script with another value in one field; all other members stay as they are.

    Raises:
        FormatError: the field does not exist, or cannot have this value.
    """
    plain = field_word(word)
    if plain not in FIELDS:
        raise FormatError(KIND, f"'{word[:40]}' is no field of a script: {', '.join(FIELDS)}")
    member, kind = FIELDS[plain]
    after = {**raw, member: _PARSE[kind](typed, plain)}
    check_length(after)
    if plain == "find" and (problem := find_problem(typed, str(raw.get("replaceString", "")))):
        raise FormatError(KIND, f"find: '{one_line(typed)[:60]}' {problem}")
    if plain == "name" and not typed.strip():
        raise FormatError(KIND, "name: a script must have a name")
    return after


def _flag(typed: str, word: str) -> bool:
    known = {"on": True, "yes": True, "true": True, "off": False, "no": False, "false": False}
    if typed.strip().lower() not in known:
        raise FormatError(KIND, f"{word}: must be on or off, not '{typed[:40]}'")
    return known[typed.strip().lower()]


def _depth(typed: str, word: str) -> int | None:
    plain = typed.strip().lower()
    if plain in ("", "none"):
        return None
    if not (plain.isascii() and plain.isdecimal() and len(plain) <= 5):
        raise FormatError(
            KIND, f"{word}: must be a number of messages, or none, not '{plain[:40]}'"
        )
    return int(plain)


def _placement(typed: str, word: str) -> list[int]:
    numbers: dict[str, int] = {name: number for number, name in PLACEMENTS.items()}
    words = [one for one in typed.lower().replace(",", " ").replace("-", "_").split() if one]
    unknown = [one for one in words if one not in numbers]
    if unknown or not words:
        wrong = unknown[0][:40] if unknown else ""
        raise FormatError(KIND, f"{word}: '{wrong}' is none of {', '.join(numbers)}")
    return sorted({numbers[one] for one in words})


def _macros(typed: str, word: str) -> int:
    if typed.strip().lower() not in FILLS:
        raise FormatError(KIND, f"{word}: must be one of {', '.join(FILLS)}")
    return FILLS[typed.strip().lower()]


_PARSE: Final[Mapping[str, Any]] = {
    "text": lambda typed, word: typed,
    "flag": _flag,
    "depth": _depth,
    "placement": _placement,
    "trim": lambda typed, word: [one for one in typed.split("\n") if one],
    "macros": _macros,
}


def find_problem(find: str, replacement: str = "") -> str:
    """Return why a regular expression cannot run, as the end of a sentence; "" if it can."""
    script = RegexScript(origin="", find=find, replacement=replacement)
    pattern = pattern_of(script)
    return pattern.reason if isinstance(pattern, Refused) else ""


class ScriptFinding(NamedTuple):
    """A problem of a script, as the lint reports it."""

    kind: str
    text: str


_SAMPLES: Final = ("Good evening.", "Ναι", "42")
_ERRORS: Final = frozenset({"regex", "never"})


def lint_script(read: ReadScript) -> Iterator[ScriptFinding]:
    """Yield what an author should know about a script that is not disabled."""
    file, script = read.file, read.for_engine("")
    yield from (ScriptFinding("field", notice) for notice in read.notices)
    pattern = pattern_of(script)
    if isinstance(pattern, Refused):
        yield ScriptFinding("regex", f"its regular expression {pattern.reason}")
    elif not file.fills_find:
        made = [pattern.replace(one, lambda _: "") for one in _SAMPLES]
        if all(isinstance(one, Replaced) and one.places for one in made):
            yield ScriptFinding("broad", "its regular expression matches every text")
    if not isinstance(pattern, Refused):
        known = pattern.known_groups
        if missing := [str(one) for one in groups_used(file.replacement) if one not in known]:
            yield ScriptFinding(
                "group", f"the replacement names groups that are not there: {', '.join(missing)}"
            )
    split = split_find(file.find)
    if split == (file.find, "") and file.find.startswith("/") and file.find.count("/") > 1:
        yield ScriptFinding(
            "flags", "SillyTavern does not know its flags, so the slashes are searched as well"
        )
    yield from _lint_places(read, script)


def _lint_places(read: ReadScript, script: RegexScript) -> Iterator[ScriptFinding]:
    unknown = [n for n in read.file.placement if n not in (*PLACEMENTS, _OLD_DISPLAY, _OLD_SEND_AS)]
    if unknown:
        yield ScriptFinding("placement", f"unknown placements: {', '.join(map(str, unknown))}")
    used = [one for one in script.placements if one in IN_A_GAME]
    if script.is_permanent:
        used = [one for one in used if one != "world_info"]
    if not used:
        yield ScriptFinding("never", f"never runs in a game: {_why_never(script)}")
    elif absent := [one for one in script.placements if one not in IN_A_GAME]:
        yield ScriptFinding("placement", f"a game has no texts of {', '.join(absent)}")
    low, high = script.min_depth, script.max_depth
    bounded = low is not None or high is not None
    if low is not None and high is not None and low > high:
        yield ScriptFinding("never", f"min_depth {low} is more than max_depth {high}")
    if bounded and script.is_permanent:
        yield ScriptFinding("depth", "its depths have no effect, as it changes the chat itself")
    elif script.has_bounds and script.prompt_only:
        yield ScriptFinding(
            "cache",
            "its depths change old messages again in later turns; a provider cannot reuse the"
            " prompt from there on",
        )
    if script.display_only and not script.prompt_only and low:
        yield ScriptFinding("never", "a game shows each line once, at depth 0")
    if not script.prompt_only and "<" in script.replacement and "</" in script.replacement:
        yield ScriptFinding("html", "players see the HTML of its replacement as plain text")


def _why_never(script: RegexScript) -> str:
    if not script.placements:
        return "it has no placement"
    if "world_info" in script.placements:
        return "lore is only changed by scripts with prompt_only"
    return f"there are no texts of {', '.join(script.placements)}"


def lint_scripts(listed: Sequence[Any]) -> Iterator[Finding]:
    """Yield the findings on the scripts of a list that are not disabled.

    A script that cannot do what its author wants is an error.
    """
    for read in read_scripts(listed):
        for finding in () if read.file.disabled else lint_script(read):
            told = f"regex script '{read.name}': {finding.text}"
            yield Finding(told, finding.kind in _ERRORS)


def describe_script(read: ReadScript) -> str:
    """Return what a script does, in one line without its texts."""
    file, script = read.file, read.for_engine("")
    told = ["off"] if file.disabled else []
    told.append(" and ".join(read.placements) or "no placement")
    if script.is_permanent:
        told.append("in prompts and for players")
    else:
        both = script.prompt_only and script.display_only
        told.append(
            "in prompts and for players"
            if both
            else "only in prompts"
            if script.prompt_only
            else "only for players"
        )
    if script.has_bounds:
        low = script.min_depth or 0
        high = "on" if script.max_depth is None else f"to {script.max_depth}"
        told.append(f"from depth {low} {high}")
    return ", ".join(told)


def counted_scripts(scripts: Iterable[ReadScript]) -> str:
    """Return how many scripts there are, and how many of them are disabled."""
    listed = [*scripts]
    off = sum(one.file.disabled for one in listed)
    number = "1 regex script" if len(listed) == 1 else f"{len(listed)} regex scripts"
    return f"{number}, {off} of them off" if off else number
