"""Lore exports of RisuAI in the shape of Card V3.

Keys are one text with commas; with `useRegex` they are all patterns. `insertorder` is order and
priority. Contents have the decorators of Card V3 and RisuAI's own. Folders are no entries: their
rows are kept with the book. How depths are counted is the standard's, not that program's.

RisuAI's own `@@` lines at the head of an entry, also of one in a card, are taken off the content
where a field says the same, and told as fields; they and their fallbacks count as in Card V3. Every
other line stays, known or not: whoever reads the content tells what is ignored.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.lorebook.decorators import (
    MAX_KEYS,
    NO_ICONS,
    has_decorators,
    head_lines,
    read_decorators,
)
from evennia_ai.engine.lorebook.scan.regex.pattern import delimited
from evennia_ai.engine.text.normal_form import BLANK_CHARACTERS
from evennia_ai.formats.lorebooks.values import (
    USUAL_ORDER,
    Flag,
    ForeignData,
    Identifier,
    Number,
    Object,
    TranslatedEntry,
    Translation,
    gathered,
    without_nulls,
)

_OWN: Final = re.compile(r"@@@?([a-z_]+)(?:[ \t]+(.*))?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHead:
    """The content without the lines that were understood, and what they say by field."""

    content: str
    said: Mapping[str, Any]
    notices: tuple[str, ...] = ()


def read_own_decorators(content: str) -> OwnHead:
    """`content` taken apart. Never raises: what is not understood stays in it."""
    if not has_decorators(content):
        return OwnHead(content=content, said={})
    lines, text = head_lines(content)
    kept: list[str] = []
    said: dict[str, Any] = {}
    notices: list[str] = []
    for chain in _chains(lines):
        found = _counting(chain)
        if found is None:
            kept += chain
        elif found[1] in said:
            notices.append(f"@@{found[0]} is ignored: a line before it says something else")
        else:
            said[found[1]] = found[2]
    if not said:
        return OwnHead(content=content, said={})
    left = "".join(kept).lstrip()
    return OwnHead(content=left + text, said=said, notices=tuple(notices))


def _chains(lines: Sequence[str]) -> Iterator[list[str]]:
    """Each line with its fallbacks and the blank lines under it."""
    chain: list[str] = []
    for line in lines:
        stripped = line.strip(BLANK_CHARACTERS)
        if chain and stripped and not stripped.startswith("@@@"):
            yield chain
            chain = []
        chain.append(line)
    if chain:
        yield chain


def _counting(chain: Sequence[str]) -> tuple[str, str, Any] | None:
    """Name, field and value of the line that counts, None where it is none of RisuAI's own."""
    lines = [stripped for line in chain if (stripped := line.strip(BLANK_CHARACTERS))]
    if lines and lines[0].startswith("@@@"):
        lines = lines[1:]  # a fallback of nothing
    for line in lines:
        found = _OWN.fullmatch(line)
        if found and found[1] in _FIELDS:
            field, read = _FIELDS[found[1]]
            value = read((found[2] or "").strip())
            if value is not None:
                return found[1], field, value
        elif read_decorators("@@" + line.lstrip("@"), absent=NO_ICONS).decorators:
            return None
    return None


def _number(text: str) -> int | None:
    found = _NUMBER.match(text)
    return int(found[0]) if found else None


def _keys_said(text: str) -> list[str] | None:
    keys = [key for part in text.split(",", MAX_KEYS) if (key := part.strip())]
    return keys if 0 < len(keys) <= MAX_KEYS else None


def _always(value: Any) -> Callable[[str], Any]:
    return lambda text: value


# Decorator -> the field it speaks of, and what its value says; None is nothing.
_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "end": ("at_the_end", _always(True)),
    "exclude_keys_all": ("not_all", _keys_said),
    "match_full_word": ("whole_words", _always(True)),
    "match_partial_word": ("whole_words", _always(False)),
    "no_recursive_search": ("recursion_excluded", _always(True)),
    "priority": ("priority", _number),
    "probability": ("chance", _number),
    "recursive": ("recursion_prevented", _always(False)),
    "unrecursive": ("recursion_prevented", _always(True)),
}


NAMESPACE: Final = "risuai"
_FOLDER_KEY: Final = "\uf000folder:"
_NOT_ALL: Final = 1
_AT_DEPTH: Final = 4
# A pattern with its slashes, or a text; a comma inside a pattern parts nothing.
_PATTERN_OR_TEXT: Final = re.compile(
    r"\s*(?:(/(?:[^/\\]|\\.)+/[a-z]*)\s*(?=,|\Z)|[^,]+)", re.DOTALL
)


class _Entry(ForeignData):
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


class _Book(ForeignData):
    name: str | None = None


def is_risu(data: Mapping[str, Any]) -> bool:
    """Whether a file's JSON value is a lore export of RisuAI."""
    return data.get("type") == "risu" and isinstance(data.get("data"), list)


def from_risu(data: Mapping[str, Any]) -> Translation:
    """The book as V3 has it; a text that is none goes on as it is and is refused there."""
    book, doubts = _Book.read(data)
    kept = {**data, "data": [row for row in data["data"] if _is_folder(row)]}
    return gathered(
        {**without_nulls({"name": book.name}), "extensions": {NAMESPACE: kept}},
        (row for row in data["data"] if not _is_folder(row)),
        _v3_entry,
        notices=doubts,
    )


def _is_folder(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    return row.get("mode") == "folder" or str(row.get("key", "")).startswith(_FOLDER_KEY)


def _v3_entry(raw: Mapping[str, Any]) -> TranslatedEntry:
    entry, unread = _Entry.read(raw)
    head = OwnHead(content=entry.content, said={})
    if isinstance(entry.content, str):
        head = read_own_decorators(entry.content)
    uses_patterns = bool(entry.use_regex)
    second, logic = _secondary(entry, head)
    extensions: Object = {**_app(entry, head, logic=logic), NAMESPACE: raw}
    if uses_patterns:
        extensions["evennia_ai"] = {"patterns": "by_form"}
    constant = bool(entry.always_active) or entry.mode == "constant"
    case_sensitive = (entry.extentions or {}).get("risu_case_sensitive")
    order = USUAL_ORDER if entry.insertorder is None else entry.insertorder
    members = {
        "id": entry.id,
        "name": entry.comment,
        "comment": entry.comment,
        "keys": _keys(entry.key, uses_patterns=uses_patterns),
        "secondary_keys": second,
        "selective": bool(second),
        "content": head.content,
        "enabled": True,
        "insertion_order": order,
        "priority": head.said.get("priority", order),
        "constant": constant,
        "use_regex": uses_patterns and not constant,  # V3 ignores `constant` beside it
        "case_sensitive": case_sensitive if isinstance(case_sensitive, bool) else None,
        "extensions": extensions,
    }
    return without_nulls(members), (*unread, *head.notices, *_doubts(entry, head))


def _secondary(entry: _Entry, head: OwnHead) -> tuple[list[str], int | None]:
    """The secondary keys, and the logic where it is not the usual one.

    That one of some keys must be missing is a logic of secondary keys, where there are no others.
    """
    patterned = bool(entry.use_regex)
    second = _keys(entry.secondkey, uses_patterns=patterned) if entry.selective else []
    unwanted = head.said.get("not_all")
    if second or unwanted is None:
        return second, None
    return [delimited(key) for key in unwanted] if patterned else unwanted, _NOT_ALL


def _app(entry: _Entry, head: OwnHead, *, logic: int | None) -> Object:
    """What the entry says in the words of SillyTavern's extension data."""
    chance = entry.activation_percent
    usual = {} if chance is None else {"probability": chance, "useProbability": True}
    return {**without_nulls({"selectiveLogic": logic}), **usual, **app_said(head)}


def app_said(head: OwnHead) -> Object:
    """What lines of RisuAI's own say in the words of SillyTavern's extension data."""
    chance = head.said.get("chance")
    ends = head.said.get("at_the_end")
    return without_nulls(
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


def with_own_lines_said(raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """An entry of Card V3 that says in fields what its lines of RisuAI's own say, and notices."""
    content = raw.get("content")
    head = read_own_decorators(content) if isinstance(content, str) else None
    if head is None or not head.said:
        return raw, ()
    given = raw.get("extensions")
    extensions = {**(given if isinstance(given, dict) else {}), **app_said(head)}
    more: Object = {"content": head.content}
    notices = head.notices
    if "priority" in head.said:
        more["priority"] = head.said["priority"]
    if (unwanted := head.said.get("not_all")) is not None:
        if raw.get("secondary_keys"):
            notices += ("@@exclude_keys_all is ignored beside secondary keys",)
        else:
            more |= {"secondary_keys": unwanted, "selective": True}
            extensions["selectiveLogic"] = _NOT_ALL
    return {**raw, **more, "extensions": extensions}, notices


def _keys(written: str | None, *, uses_patterns: bool) -> list[str]:
    text = written or ""
    if not uses_patterns:
        return [key for part in text.split(",") if (key := part.strip())]
    found = (match[0].strip() for match in _PATTERN_OR_TEXT.finditer(text))
    return [delimited(key) for key in found if key]


def _doubts(entry: _Entry, head: OwnHead) -> Iterator[str]:
    """What RisuAI would do with the entry and we do not."""
    if entry.mode == "child":
        yield "mode child is not done: the entry has its own text, not that of its parent"
    if "not_all" in head.said and entry.selective and (entry.secondkey or "").strip(" ,"):
        yield "@@exclude_keys_all is ignored beside secondary keys"
