"""Translate lorebooks of NovelAI, Agnai and RisuAI to the structure of Card V3.

A translated entry expresses the settings of the other program in V3's fields, SillyTavern's
extension data and the `evennia_ai` data. The original entry is kept as a whole under `extensions`,
in a member with the program's name. A setting that cannot be expressed becomes a notice. Content
that is not text is passed on unchanged; the reader of V3 entries refuses it.

The module has shared code, then a part for each program, then the choice of the program. RisuAI
writes its own `@@` lines into Card V3 cards too, so its part also reads these lines.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.foreign.fields import read_leniently
from evennia_ai.engine.lorebook.decorators import (
    MAX_KEYS,
    NO_ICONS,
    has_decorators,
    head_lines,
    parse_decorators,
)
from evennia_ai.engine.lorebook.entry import MAX_KEY
from evennia_ai.engine.lorebook.scan.regex.pattern import has_slashes, with_slashes
from evennia_ai.engine.text.normal_form import BLANK_CHARACTERS
from evennia_ai.engine.text.words import is_in_word
from evennia_ai.formats.lorebooks.entry_fields import V3_POSITIONS
from evennia_ai.formats.lorebooks.values import (
    Code,
    Flag,
    Identifier,
    Number,
    Texts,
    WholeCount,
)

Object = dict[str, Any]
# A translated entry: the V3 entry, and the notices about it.
_TranslatedEntry = tuple[Object, tuple[str, ...]]

_USUAL_ORDER: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A book that was translated to V3, with notices about the translation."""

    book: Object
    notices: tuple[str, ...] = ()
    doubts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Notices about entries, by the index of the entry."""


class _ForeignData(BaseModel):
    """The fields that are read from another program's data, which has their names in camel case."""

    model_config = ConfigDict(strict=True, frozen=True, alias_generator=to_camel, defer_build=True)

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> tuple[Self, tuple[str, ...]]:
        """Return the fields found in `raw`, and a notice for each field that cannot be read."""
        read, problems = read_leniently(cls, raw)
        return read, tuple(problems.values())


def _translate_entries(
    head: Object,
    raws: Iterable[Any],
    translate: Callable[[Mapping[str, Any]], _TranslatedEntry],
    *,
    notices: tuple[str, ...],
) -> Translation:
    """Translate the entries of another program's book one by one.

    An entry that is not an object is passed on unchanged; the reader of V3 entries refuses it.
    """
    entries: list[Any] = []
    doubts: dict[int, tuple[str, ...]] = {}
    for raw in raws:
        entry, found = translate(raw) if isinstance(raw, dict) else (raw, ())
        if found:
            doubts[len(entries)] = found
        entries.append(entry)
    return Translation(book={**head, "entries": entries}, notices=notices, doubts=doubts)


def _without_nulls(members: Mapping[str, Any]) -> Object:
    """Return a dict without the members that are None."""
    return {name: value for name, value in members.items() if value is not None}


# NovelAI's lorebooks. Keys match whole words in any letter case; a key of the form `/pattern/` is a
# regular expression. `contextConfig.budgetPriority` is both order and priority. NovelAI counts its
# limits in characters and trims texts; this cannot be expressed and becomes a notice.

_NOVELAI_PRIORITY: Final = 400
_NOVELAI_RANGE: Final = 1000


class _NovelAIPlacing(_ForeignData):
    budget_priority: Number | None = None
    prefix: str | None = None
    suffix: str | None = None


class _NovelAIEntry(_ForeignData):
    text: Any = ""
    keys: Texts | None = None
    display_name: str | None = None
    id: Identifier | None = None
    enabled: Flag | None = None
    force_activation: Flag | None = None
    search_range: Number | None = None
    key_relative: Flag | None = None
    category: str | None = None
    context_config: _NovelAIPlacing | None = None
    advanced_conditions: list[Any] | None = None


class _NovelAICategory(_ForeignData):
    id: str | None = None
    name: str | None = None
    enabled: Flag | None = None


class _NovelAIBook(_ForeignData):
    name: str | None = None
    categories: list[Any] | None = None


def _is_novelai(data: Mapping[str, Any]) -> bool:
    return "lorebookVersion" in data and isinstance(data.get("entries"), list)


def _from_novelai(data: Mapping[str, Any]) -> Translation:
    book, doubts = _NovelAIBook.read(data)
    read = (_NovelAICategory.read(raw)[0] for raw in book.categories or () if isinstance(raw, dict))
    off = {
        category.id: category.name or category.id
        for category in read
        if category.id and category.enabled is False
    }
    told = (
        f"category '{one_line(name)[:60]}' is switched off, and its entries with it"
        for name in off.values()
    )
    kept = {name: value for name, value in data.items() if name != "entries"}
    return _translate_entries(
        {**_without_nulls({"name": book.name}), "extensions": {"novelai": kept}},
        data["entries"],
        partial(_novelai_entry, off=off),
        notices=(*doubts, *told),
    )


def _novelai_entry(raw: Mapping[str, Any], *, off: Mapping[str, str]) -> _TranslatedEntry:
    """Translate an entry of NovelAI; `off` has the names of switched-off categories by id."""
    entry, unread = _NovelAIEntry.read(raw)
    keys = entry.keys or []
    patterns = [has_slashes(key.strip()) for key in keys]
    placing = entry.context_config or _NovelAIPlacing()
    priority = _NOVELAI_PRIORITY if placing.budget_priority is None else placing.budget_priority
    constant = bool(entry.force_activation)
    extensions: Object = {"match_whole_words": True, "novelai": raw}
    if any(patterns):
        extensions["evennia_ai"] = {"patterns": "by_form"}
    members = {
        "id": entry.id,
        "name": entry.display_name,
        "comment": entry.display_name,
        "keys": keys,
        "content": entry.text,
        "enabled": entry.enabled is not False and entry.category not in off,
        "insertion_order": priority,
        "priority": priority,
        "constant": constant,
        # V3 ignores `constant` if `use_regex` is set, so only one of them is set
        "use_regex": not constant and bool(patterns) and all(patterns),
        "case_sensitive": False,
        "extensions": extensions,
    }
    return _without_nulls(members), (*unread, *_novelai_doubts(entry, placing))


def _novelai_doubts(entry: _NovelAIEntry, placing: _NovelAIPlacing) -> Iterator[str]:
    """Yield a notice for each setting of a NovelAI entry that this package does not support."""
    if entry.search_range not in (None, _NOVELAI_RANGE):
        yield (
            f"searchRange {entry.search_range} counts characters and is ignored:"
            " the scan depth of the rules is used"
        )
    if entry.key_relative:
        yield "keyRelative is not supported: the text is at its place, not next to its key"
    if entry.advanced_conditions:
        yield "advancedConditions are not supported: only the keys decide"
    if (placing.prefix or "").strip() or (placing.suffix or "").strip():
        yield "prefix and suffix of contextConfig are not added: write them into the text"
    if any(" & " in key and not has_slashes(key.strip()) for key in entry.keys or ()):
        yield "a key with '&' is a single phrase here: use secondary keys to require several words"


# Agnai's memory books. A keyword matches a whole word in any letter case. In a keyword, `*` matches
# any run of letters and `?` one letter; a keyword with one of these becomes a regular expression. A
# keyword of only `*` makes the entry constant. `weight` is the order of entries (the highest at the
# bottom). `priority` decides which entries stay within the budget.

_LONGEST_RUN: Final = 30
"""The maximum number of letters that `*` in an Agnai keyword matches.

The limit keeps the time of a search bounded for any text.
"""
_LETTER: Final = r"[\p{L}\p{M}\p{N}_]"
_WILDCARDS: Final = re.compile(r"[*?]")
_PIECES: Final = re.compile(r"\*+|\?|[^*?]+")
# Matches characters that are escaped in a regular expression: its special characters, and the
# slash.
_SYNTAX: Final = re.compile(r"[\\^$.|+()\[\]{}/]")


class _AgnaiEntry(_ForeignData):
    entry: Any = ""
    keywords: Texts | None = None
    name: str | None = None
    comment: str | None = None
    id: Identifier | None = None
    enabled: Flag | None = None
    priority: Number | None = None
    weight: Number | None = None
    constant: Flag | None = None
    selective: Flag | None = None
    secondary_keys: Texts | None = None
    selective_logic: Code | None = None
    position: str | None = None
    probability: Number | None = None
    use_probability: Flag | None = None
    exclude_recursion: Flag | None = None


class _AgnaiBook(_ForeignData):
    name: str | None = None
    description: str | None = None
    scan_depth: WholeCount | None = None
    token_budget: WholeCount | None = None
    recursive_scanning: Flag | None = None


def _is_agnai(data: Mapping[str, Any]) -> bool:
    return data.get("kind") == "memory"


def _from_agnai(data: Mapping[str, Any]) -> Translation:
    book, doubts = _AgnaiBook.read(data)
    head = book.model_dump(exclude_none=True)
    kept = {name: value for name, value in data.items() if name != "entries"}
    return _translate_entries(
        {**head, "extensions": {"agnai": kept}}, data["entries"], _agnai_entry, notices=doubts
    )


def _agnai_entry(raw: Mapping[str, Any]) -> _TranslatedEntry:
    entry, unread = _AgnaiEntry.read(raw)
    words = [word for written in entry.keywords or () if (word := written.strip())]
    always = any(not word.strip("*") for word in words)
    words = [word for word in words if word.strip("*")]
    second = [word for written in entry.secondary_keys or () if (word := written.strip())]
    has_chance = entry.probability is not None
    extensions: Object = {
        "match_whole_words": True,
        **_without_nulls(
            {
                "selectiveLogic": entry.selective_logic,
                "exclude_recursion": entry.exclude_recursion,
                "probability": entry.probability,
                "useProbability": bool(entry.use_probability) if has_chance else None,
            }
        ),
        "agnai": raw,
    }
    if any(map(_WILDCARDS.search, (*words, *second))):
        extensions["evennia_ai"] = {"patterns": "by_form"}
        words, second = [*map(_agnai_key, words)], [*map(_agnai_key, second)]
    members = {
        "id": entry.id,
        "name": entry.name,
        "comment": entry.name or entry.comment,
        "keys": words,
        "secondary_keys": second,
        "selective": bool(entry.selective and second),
        "content": entry.entry,
        "enabled": entry.enabled is not False,
        "insertion_order": _USUAL_ORDER if entry.weight is None else entry.weight,
        "priority": entry.priority,
        "constant": bool(entry.constant) or always,
        "use_regex": False,
        "case_sensitive": False,
        "position": entry.position if entry.position in V3_POSITIONS else None,
        "extensions": extensions,
    }
    return _without_nulls(members), unread


def _agnai_key(word: str) -> str:
    """Return an Agnai keyword as a key of an entry that also has regular expressions.

    The keyword is converted to a regular expression if a plain key would match differently.
    """
    has_meaning = _WILDCARDS.search(word) or has_slashes(word)
    if not has_meaning or len(word) > MAX_KEY:
        return word
    body = "".join(map(_agnai_pattern, _PIECES.findall(word.strip("*"))))
    before = f"(?<!{_LETTER})" if word[0] != "*" and _has_edge(word[0]) else ""
    after = f"(?!{_LETTER})" if word[-1] != "*" and _has_edge(word[-1]) else ""
    return f"/{before}{body}{after}/iu"


def _agnai_pattern(piece: str) -> str:
    if piece[0] == "*":
        return f"{_LETTER}{{0,{_LONGEST_RUN}}}"
    return _LETTER if piece == "?" else _SYNTAX.sub(r"\\\g<0>", piece)


def _has_edge(char: str) -> bool:
    """True if a word can begin or end at this character of a keyword.

    In scripts without spaces between words, this is unknown.
    """
    return char == "?" or is_in_word(char)


# RisuAI's lorebooks. Keys are one text with commas; with `useRegex` all keys are regular
# expressions. `insertorder` is both order and priority. Folders are not entries, so they are only
# kept under the book's `extensions`. Depths are counted as in Card V3, not as in RisuAI.

_FOLDER_KEY: Final = "\uf000folder:"
_NOT_ALL: Final = 1
_AT_DEPTH: Final = 4
# Matches a regular expression with its slashes, or plain text up to the next comma. A comma inside
# a regular expression does not separate keys.
_PATTERN_OR_TEXT: Final = re.compile(
    r"\s*(?:(/(?:[^/\\]|\\.)+/[a-z]*)\s*(?=,|\Z)|[^,]+)", re.DOTALL
)


class _RisuEntry(_ForeignData):
    content: Any = ""
    key: str | None = None
    secondkey: str | None = None
    comment: str | None = None
    mode: str | None = None
    id: Identifier | None = None
    always_active: Flag | None = None
    selective: Flag | None = None
    insertorder: Number | None = None
    activation_percent: Number | None = None
    use_regex: Flag | None = None
    extentions: dict[str, Any] | None = None


class _RisuBook(_ForeignData):
    name: str | None = None


def _is_risu(data: Mapping[str, Any]) -> bool:
    return data.get("type") == "risu" and isinstance(data.get("data"), list)


def _from_risu(data: Mapping[str, Any]) -> Translation:
    book, doubts = _RisuBook.read(data)
    kept = {**data, "data": [row for row in data["data"] if _is_risu_folder(row)]}
    return _translate_entries(
        {**_without_nulls({"name": book.name}), "extensions": {"risuai": kept}},
        (row for row in data["data"] if not _is_risu_folder(row)),
        _risu_entry,
        notices=doubts,
    )


def _is_risu_folder(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    return row.get("mode") == "folder" or str(row.get("key", "")).startswith(_FOLDER_KEY)


def _risu_entry(raw: Mapping[str, Any]) -> _TranslatedEntry:
    entry, unread = _RisuEntry.read(raw)
    head = RisuHead(content=entry.content, said={})
    if isinstance(entry.content, str):
        head = read_risu_lines(entry.content)
    uses_patterns = bool(entry.use_regex)
    second = _risu_keys(entry.secondkey, uses_patterns=uses_patterns) if entry.selective else []
    unwanted, logic = head.said.get("not_all"), None
    if not second and unwanted is not None:
        # The line @@exclude_keys_all becomes secondary keys with the logic "not all". This is
        # possible only if the entry has no other secondary keys.
        second = [with_slashes(key) for key in unwanted] if uses_patterns else unwanted
        logic = _NOT_ALL
    chance = entry.activation_percent
    extensions: Object = {
        **_without_nulls({"selectiveLogic": logic}),
        **({} if chance is None else {"probability": chance, "useProbability": True}),
        **_risu_extensions(head),
        "risuai": raw,
    }
    if uses_patterns:
        extensions["evennia_ai"] = {"patterns": "by_form"}
    constant = bool(entry.always_active) or entry.mode == "constant"
    case_sensitive = (entry.extentions or {}).get("risu_case_sensitive")
    order = _USUAL_ORDER if entry.insertorder is None else entry.insertorder
    members = {
        "id": entry.id,
        "name": entry.comment,
        "comment": entry.comment,
        "keys": _risu_keys(entry.key, uses_patterns=uses_patterns),
        "secondary_keys": second,
        "selective": bool(second),
        "content": head.content,
        "enabled": True,
        "insertion_order": order,
        "priority": head.said.get("priority", order),
        "constant": constant,
        "use_regex": uses_patterns and not constant,  # V3 ignores `constant` if `use_regex` is set
        "case_sensitive": case_sensitive if isinstance(case_sensitive, bool) else None,
        "extensions": extensions,
    }
    return _without_nulls(members), (*unread, *head.notices, *_risu_doubts(entry, head))


def _risu_keys(written: str | None, *, uses_patterns: bool) -> list[str]:
    text = written or ""
    if not uses_patterns:
        return [key for part in text.split(",") if (key := part.strip())]
    found = (match[0].strip() for match in _PATTERN_OR_TEXT.finditer(text))
    return [with_slashes(key) for key in found if key]


def _risu_doubts(entry: _RisuEntry, head: "RisuHead") -> Iterator[str]:
    """Yield a notice for each setting of a RisuAI entry that this package does not support."""
    if entry.mode == "child":
        yield "mode child is not supported: the entry has its own text, not that of its parent"
    if "not_all" in head.said and entry.selective and (entry.secondkey or "").strip(" ,"):
        yield "@@exclude_keys_all is ignored next to secondary keys"


# RisuAI has `@@` lines of its own. They are at the beginning of an entry's content, and decorators
# of Card V3 may stand between them. If a field of our entries can express a RisuAI line, the line
# becomes that field and is removed from the content. Fallback lines (`@@@`) follow the rules of
# Card V3. All other lines stay in the content. `parse_decorators` reads the content later and
# reports the lines that it ignores.

_RISU_LINE: Final = re.compile(r"@@@?([a-z_]+)(?:[ \t]+(.*))?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class RisuHead:
    """An entry's content without RisuAI's own lines, and the values of these lines by field."""

    content: str
    said: Mapping[str, Any]
    notices: tuple[str, ...] = ()


def read_risu_lines(content: str) -> RisuHead:
    """Remove RisuAI's own `@@` lines from an entry's content.

    Lines that cannot be parsed stay in the content.
    """
    if not has_decorators(content):
        return RisuHead(content=content, said={})
    lines, text = head_lines(content)
    kept: list[str] = []
    said: dict[str, Any] = {}
    notices: list[str] = []
    for chain in _chains(lines):
        found = _counting_line(chain)
        if found is None:
            kept += chain
        elif found[1] in said:
            notices.append(f"@@{found[0]} is ignored: an earlier line sets the same field")
        else:
            said[found[1]] = found[2]
    if not said:
        return RisuHead(content=content, said={})
    left = "".join(kept).lstrip()
    return RisuHead(content=left + text, said=said, notices=tuple(notices))


def _chains(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield each decorator line with its fallback lines (`@@@`) and the blank lines that follow."""
    chain: list[str] = []
    for line in lines:
        stripped = line.strip(BLANK_CHARACTERS)
        if chain and stripped and not stripped.startswith("@@@"):
            yield chain
            chain = []
        chain.append(line)
    if chain:
        yield chain


def _counting_line(chain: Sequence[str]) -> tuple[str, str, Any] | None:
    """Return the name, field and value of the first line of RisuAI that can be parsed.

    `chain` is a decorator line with its fallback lines. Return None if a decorator of Card V3 comes
    first, or if there is no such line.
    """
    lines = [stripped for line in chain if (stripped := line.strip(BLANK_CHARACTERS))]
    if lines and lines[0].startswith("@@@"):
        # the first line is a fallback (`@@@`) without a line that it could replace, so it is
        # ignored
        lines = lines[1:]
    for line in lines:
        found = _RISU_LINE.fullmatch(line)
        if found and found[1] in _RISU_FIELDS:
            field_name, read = _RISU_FIELDS[found[1]]
            value = read((found[2] or "").strip())
            if value is not None:
                return found[1], field_name, value
        elif parse_decorators("@@" + line.lstrip("@"), absent=NO_ICONS).decorators:
            return None
    return None


def _number(text: str) -> int | None:
    found = _NUMBER.match(text)
    return int(found[0]) if found else None


def _key_list(text: str) -> list[str] | None:
    keys = [key for part in text.split(",", MAX_KEYS) if (key := part.strip())]
    return keys if 0 < len(keys) <= MAX_KEYS else None


def _always(value: Any) -> Callable[[str], Any]:
    return lambda text: value


# Maps the names of RisuAI's own `@@` lines to the field that the line sets, and the function that
# parses its value. The function returns None for an invalid value.
_RISU_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "end": ("at_the_end", _always(True)),
    "exclude_keys_all": ("not_all", _key_list),
    "match_full_word": ("whole_words", _always(True)),
    "match_partial_word": ("whole_words", _always(False)),
    "no_recursive_search": ("recursion_excluded", _always(True)),
    "priority": ("priority", _number),
    "probability": ("chance", _number),
    "recursive": ("recursion_prevented", _always(False)),
    "unrecursive": ("recursion_prevented", _always(True)),
}


def _risu_extensions(head: RisuHead) -> Object:
    """Return the values of RisuAI's own `@@` lines as SillyTavern's extension data."""
    chance = head.said.get("chance")
    ends = head.said.get("at_the_end")
    return _without_nulls(
        {
            "probability": chance,
            "useProbability": None if chance is None else True,
            "match_whole_words": head.said.get("whole_words"),
            "exclude_recursion": head.said.get("recursion_excluded"),
            "prevent_recursion": head.said.get("recursion_prevented"),
            "position": _AT_DEPTH if ends else None,
            "depth": 0 if ends else None,
        }
    )


def with_risu_lines_as_fields(
    raw: Mapping[str, Any],
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return a Card V3 entry with RisuAI's own `@@` lines as fields, and notices about them."""
    content = raw.get("content")
    head = read_risu_lines(content) if isinstance(content, str) else None
    if head is None or not head.said:
        return raw, ()
    given = raw.get("extensions")
    extensions = {**(given if isinstance(given, dict) else {}), **_risu_extensions(head)}
    more: Object = {"content": head.content}
    notices = head.notices
    if "priority" in head.said:
        more["priority"] = head.said["priority"]
    if (unwanted := head.said.get("not_all")) is not None:
        if raw.get("secondary_keys"):
            notices += ("@@exclude_keys_all is ignored next to secondary keys",)
        else:
            more |= {"secondary_keys": unwanted, "selective": True}
            extensions["selectiveLogic"] = _NOT_ALL
    return {**raw, **more, "extensions": extensions}, notices


class _Program(NamedTuple):
    is_its_own: Callable[[Mapping[str, Any]], bool]
    listed_in: str
    translate: Callable[[Mapping[str, Any]], Translation]


# The programs whose lorebooks can be translated, in the order in which they are tried.
_PROGRAMS: Final = (
    _Program(_is_novelai, "entries", _from_novelai),
    _Program(_is_agnai, "entries", _from_agnai),
    _Program(_is_risu, "data", _from_risu),
)


def is_of_another_program(data: Any) -> bool:
    """True if the JSON value looks like the book of another program."""
    return _program_of(data) is not None


def translate_book(data: Any, *, limit_entries: int, where: str = "book") -> Translation | None:
    """Translate another program's book to V3; return None if the data is not such a book.

    Args:
        data: the JSON value of the file.

    Raises:
        FormatError: the book has no list of entries, or too many entries.
    """
    program = _program_of(data)
    if program is None:
        return None
    listed = data.get(program.listed_in)
    if not isinstance(listed, list):
        raise FormatError("book", f"{where}.{program.listed_in}: must be a list")
    if len(listed) > limit_entries:
        raise FormatError("book", f"{where}: has more than {limit_entries} entries; split it")
    return program.translate(data)


def _program_of(data: Any) -> _Program | None:
    # A file with the spec `lorebook_v3` is V3, even if it also looks like another program's book.
    if not isinstance(data, Mapping) or data.get("spec") == "lorebook_v3":
        return None
    return next((program for program in _PROGRAMS if program.is_its_own(data)), None)
