"""Translate lore exports of RisuAI to Card V3, and read RisuAI's own decorators.

Keys are one text with commas; with `useRegex` all of them are regular expressions. `insertorder` is
both order and priority. Folders are not entries: their rows are kept with the book. Depths are
counted as in Card V3, not as in RisuAI.

Contents may begin with decorators of Card V3 and of RisuAI, also in cards. A decorator of RisuAI
that a field can express is removed from the content and becomes that field. It and its fallbacks
count as in Card V3. All other lines stay; the reader of Card V3's decorators reports the unknown
ones.
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
from evennia_ai.engine.text.normal_form import BLANKS
from evennia_ai.formats.lorebooks.values import (
    USUAL_ORDER,
    Flag,
    ForeignData,
    Identifier,
    Number,
    Object,
    TranslatedEntry,
    Translation,
    translate_entries,
    without_nulls,
)

_OWN: Final = re.compile(r"@@@?([a-z_]+)(?:[ \t]+(.*))?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnHead:
    """Content without the decorators that became fields, and the values of those fields."""

    content: str
    said: Mapping[str, Any]
    notices: tuple[str, ...] = ()


def read_own_decorators(content: str) -> OwnHead:
    """Take RisuAI's own decorators from the head of a content; never raises."""
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
    """Yield each decorator line with its fallbacks (`@@@`) and blank lines."""
    chain: list[str] = []
    for line in lines:
        stripped = line.strip(BLANKS)
        if chain and stripped and not stripped.startswith("@@@"):
            yield chain
            chain = []
        chain.append(line)
    if chain:
        yield chain


def _counting(chain: Sequence[str]) -> tuple[str, str, Any] | None:
    """Return name, field and value of the line that counts, None if it is not one of RisuAI's."""
    lines = [stripped for line in chain if (stripped := line.strip(BLANKS))]
    if lines and lines[0].startswith("@@@"):
        lines = lines[1:]  # a fallback without a decorator before it
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


# By decorator: its field, and a reader of its value, which returns None for a wrong value.
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
# A regular expression with its slashes, which may contain commas, or a text up to a comma.
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
    """True if a file's JSON value is a lore export of RisuAI."""
    return data.get("type") == "risu" and isinstance(data.get("data"), list)


def from_risu(data: Mapping[str, Any]) -> Translation:
    """Translate the book to V3; the V3 reader refuses entries whose text is not text."""
    book, doubts = _Book.read(data)
    kept = {**data, "data": [row for row in data["data"] if _is_folder(row)]}
    return translate_entries(
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
        "use_regex": uses_patterns and not constant,  # V3 ignores `constant` next to it
        "case_sensitive": case_sensitive if isinstance(case_sensitive, bool) else None,
        "extensions": extensions,
    }
    return without_nulls(members), (*unread, *head.notices, *_doubts(entry, head))


def _secondary(entry: _Entry, head: OwnHead) -> tuple[list[str], int | None]:
    """Return the secondary keys of an entry, and their logic if it is not the usual one.

    `@@exclude_keys_all` becomes secondary keys with the logic "not all", unless the entry has
    secondary keys already.
    """
    patterned = bool(entry.use_regex)
    second = _keys(entry.secondkey, uses_patterns=patterned) if entry.selective else []
    unwanted = head.said.get("not_all")
    if second or unwanted is None:
        return second, None
    return [delimited(key) for key in unwanted] if patterned else unwanted, _NOT_ALL


def _app(entry: _Entry, head: OwnHead, *, logic: int | None) -> Object:
    """Return the entry's settings as members of SillyTavern's extension data."""
    chance = entry.activation_percent
    usual = {} if chance is None else {"probability": chance, "useProbability": True}
    return {**without_nulls({"selectiveLogic": logic}), **usual, **app_members(head)}


def app_members(head: OwnHead) -> Object:
    """Return the values of RisuAI's decorators as members of SillyTavern's extension data."""
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


def apply_own_decorators(raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return an entry of Card V3 with RisuAI's decorators turned into fields, and notices."""
    content = raw.get("content")
    head = read_own_decorators(content) if isinstance(content, str) else None
    if head is None or not head.said:
        return raw, ()
    given = raw.get("extensions")
    extensions = {**(given if isinstance(given, dict) else {}), **app_members(head)}
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


def _keys(written: str | None, *, uses_patterns: bool) -> list[str]:
    text = written or ""
    if not uses_patterns:
        return [key for part in text.split(",") if (key := part.strip())]
    found = (match[0].strip() for match in _PATTERN_OR_TEXT.finditer(text))
    return [delimited(key) for key in found if key]


def _doubts(entry: _Entry, head: OwnHead) -> Iterator[str]:
    """Yield a notice for each setting of RisuAI that has no effect here."""
    if entry.mode == "child":
        yield "mode child is not done: the entry has its own text, not that of its parent"
    if "not_all" in head.said and entry.selective and (entry.secondkey or "").strip(" ,"):
        yield "@@exclude_keys_all is ignored next to secondary keys"
