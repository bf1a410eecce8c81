"""RisuAI's own `@@` lines at the head of an entry, where a field says the same.

They are taken off the content and told as fields; they and their fallbacks count as in Card V3.
Every other line stays, known or not: whoever reads the content tells what is ignored.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.lorebook.decorators import MAX_KEYS, NO_ICONS, head_lines, read_decorators

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
    if not content.lstrip().startswith("@@"):
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
        stripped = line.strip()
        if chain and stripped and not stripped.startswith("@@@"):
            yield chain
            chain = []
        chain.append(line)
    if chain:
        yield chain


def _counting(chain: Sequence[str]) -> tuple[str, str, Any] | None:
    """Name, field and value of the line that counts, None where it is none of RisuAI's own."""
    lines = [stripped for line in chain if (stripped := line.strip())]
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


def _keys(text: str) -> list[str] | None:
    keys = [key for part in text.split(",", MAX_KEYS) if (key := part.strip())]
    return keys if 0 < len(keys) <= MAX_KEYS else None


def _always(value: Any) -> Callable[[str], Any]:
    return lambda text: value


# Decorator -> the field it speaks of, and what its value says; None is nothing.
_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "end": ("at_the_end", _always(True)),
    "exclude_keys_all": ("not_all", _keys),
    "match_full_word": ("whole_words", _always(True)),
    "match_partial_word": ("whole_words", _always(False)),
    "no_recursive_search": ("recursion_excluded", _always(True)),
    "priority": ("priority", _number),
    "probability": ("chance", _number),
    "recursive": ("recursion_prevented", _always(False)),
    "unrecursive": ("recursion_prevented", _always(True)),
}
