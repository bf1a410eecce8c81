"""What builders' texts mean of an entry: keys, numbers, places, conditions, and how each reads.

Each function gives a value for `lorebook.editing.edits` or raises `TypedError` with one line. The
command `lore` and the forms of the pages both read what is typed by this.
Which fields an entry has is for the table of `lorebook.formats`, what a value may be beyond its
kind for the editing to judge.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Final, get_args

from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.lorebook.book import mention_in_words
from evennia_ai.engine.lorebook.conditions import TESTS
from evennia_ai.engine.lorebook.entry import (
    AT_MENTION,
    MENTIONINGS,
    SIDES,
    LoreEntry,
    Patterns,
    Position,
)
from evennia_ai.engine.lorebook.scan.regex.pattern import Refused, is_delimited, read_pattern
from evennia_ai.engine.prompt.components import MAX_DEPTH
from evennia_ai.engine.text.columns import clipped, visible
from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS, LoreField, Typed
from evennia_ai.formats.lorebooks.values import Step

NOTHING: Final = "off"
LOGICS: Final = {"any": "any", "all": "all", "not any": "not_any", "not all": "not_all"}

# The positions that need nothing said with them.
_PLAIN: Final[tuple[str, ...]] = tuple(
    name for name in get_args(Position) if name not in ("outlet", "anchor", AT_MENTION)
)
_MENTION: Final = f"{AT_MENTION} [{' | '.join(SIDES)}] [{' | '.join(MENTIONINGS)}]"
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_MOST_DIGITS: Final = 15
_FLAGS: Final = {
    **dict.fromkeys(("on", "yes", "true"), True),
    **dict.fromkeys(("off", "no", "false"), False),
}
# A key: a pattern /.../flags, which may hold commas and colons, or any text without them.
_PATTERN: Final = r"\s*(/(?:[^/\\]|\\.)+/[a-zA-Z]*(?=\s*(?:[{ends}]|$))|[^{ends}]*)\s*"
_KEY: Final = re.compile(_PATTERN.format(ends=","), re.DOTALL)
_KEY_BEFORE_COLON: Final = re.compile(_PATTERN.format(ends=",:"), re.DOTALL)
_LOGIC: Final = re.compile(r"(not\s+any|not\s+all|any|all)(?:\s*:\s*|\s+|$)(.*)", re.DOTALL | re.I)


class TypedError(EvenniaAIError):
    """What a builder typed means nothing of the kind; the text says why and what would."""


def keys_in(text: str) -> list[str]:
    """The keys of `a, b, /c,d/i`: commas part them, but not inside a pattern; none for off."""
    if text.lower() == NOTHING:
        return []
    return _keys(text, _KEY)[0]


def keys_and_content(text: str) -> tuple[list[str], str]:
    """The keys of `a, /b:c/: content`, and the content behind the first colon outside a pattern."""
    keys, end = _keys(text, _KEY_BEFORE_COLON)
    return keys, text[end + 1 :].strip()


def with_patterns(fields: dict[str, Any], *, of: LoreEntry | None = None) -> dict[str, Any]:
    """The fields, and that keys of the form /.../ are patterns, where one is and `of` says not.

    TypedError: a key that is to be a pattern cannot be read as one.
    """
    keys = [*fields.get("keys", ()), *fields.get("secondary_keys", ())]
    patterns: Patterns = "none" if of is None else of.patterns
    if patterns == "none" and any(map(is_delimited, keys)):
        fields, patterns = {**fields, "patterns": "by_form"}, "by_form"
    check_patterns(keys, patterns)
    return fields


def check_patterns(keys: Iterable[str], patterns: Patterns) -> None:
    """TypedError names the first key that is to be a pattern and cannot be read as one."""
    for key in keys:
        if patterns == "none" or (patterns == "by_form" and not is_delimited(key)):
            continue
        read = read_pattern(key)
        if isinstance(read, Refused) and read.is_broken:
            raise TypedError(f"The key {clipped(key, 80)} {read.reason}. Nothing was changed.")


def _keys(text: str, key: re.Pattern[str]) -> tuple[list[str], int]:
    """The keys that stand in a row with commas between them, and where the row ends."""
    keys: list[str] = []
    at = -1
    while at < len(text) and (at < 0 or text[at] == ","):
        found = key.match(text, at + 1)
        assert found  # the pattern also matches nothing at all
        keys += [found[1].strip()] if found[1].strip() else []
        at = found.end()
    return keys, at


def secondary_in(text: str) -> dict[str, Any]:
    """The fields of `[any|all|not any|not all] a, b`; what is not named stays as it is."""
    found = _LOGIC.fullmatch(text.strip())
    if found is None:
        return {"secondary_keys": keys_in(text)}
    logic = LOGICS[" ".join(found[1].lower().split())]
    keys = keys_in(found[2])
    return {"logic": logic, **({"secondary_keys": keys} if keys else {})}


def position_in(text: str) -> dict[str, Any]:
    """The fields of a place: a word, `depth:<n>`, `outlet:<name>`, `before:<component>`."""
    place, _, of = (part.strip() for part in text.partition(":"))
    place = place.lower()
    if place in ("before", "after") and of:
        return {"position": "anchor", "anchor": {"component": of, "side": place}}
    if place == "outlet" and of:
        return {"position": "outlet", "outlet": of}
    if place == "depth" and of:
        return {"position": "depth", "depth": _whole(of, what="depth")}
    if place.split()[:1] == [AT_MENTION] and not of:
        return {"position": AT_MENTION, "mention": mention_in(text)}
    if place in _PLAIN and not of:
        return {"position": place}
    raise TypedError(
        f"'{text}' is no position; there are {', '.join(_PLAIN)}, outlet:<name>,"
        f" before:<component>, after:<component> and {_MENTION}. Nothing was changed."
    )


def mention_in(text: str) -> dict[str, str]:
    """What `at_mention after oldest` says: on which side of which message."""
    place, *given = text.lower().split() or [""]
    side = next((word for word in SIDES if word in given), SIDES[0])
    message = next((word for word in MENTIONINGS if word in given), MENTIONINGS[0])
    if place != AT_MENTION or len(given) > len({*given} & {side, message}):
        raise TypedError(f"'{text}' is no place; write {_MENTION}. Nothing was changed.")
    return {"side": side, "message": message}


def text_in(text: str) -> str:
    """The text itself, "" for off."""
    return "" if text.lower() == NOTHING else text


def number(text: str) -> float:
    """A number; whole where it is written so."""
    if not _NUMBER.fullmatch(text):
        raise TypedError(f"'{text}' is no number. Nothing was changed.")
    return float(text) if "." in text else int(text)


def number_or_off(text: str) -> float:
    """A number, 0 for off."""
    return 0 if text.lower() == NOTHING else number(text)


def _whole(text: str, *, what: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise TypedError(
            f"The {what} must be a whole number, 0 or more; '{text}' is not. Nothing was changed."
        )
    return int(text)


def flag(text: str) -> bool:
    """On or off."""
    if text.lower() not in _FLAGS:
        raise TypedError(f"'{text}' is neither on nor off. Nothing was changed.")
    return _FLAGS[text.lower()]


def word(text: str) -> str:
    """One of the words that a field knows."""
    return text.lower()


def questions(text: str) -> list[dict[str, Any]]:
    """Conditions of `<fact> <test> <value>, <value>; <fact> <test> <value>`."""
    if text.lower() == NOTHING:
        return []
    return [_question(part) for part in text.split(";") if part.strip()]


def _question(text: str) -> dict[str, Any]:
    words = text.split(maxsplit=2)
    if len(words) < 3:
        raise TypedError(
            f"'{text.strip()}' is no condition; write <fact> <test> <value>, <value>, with one of"
            f" the tests {', '.join(TESTS)}. Nothing was changed."
        )
    fact, test, values = words
    return {"fact": fact, "test": test.lower(), "values": [_value(v) for v in keys_in(values)]}


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return number(text) if _NUMBER.fullmatch(text) else text


DEFAULT: Final = "default"
UNUSED: Final = "unused, for there is no sticky, cooldown or delay"

_SHOWN_COLUMNS: Final = 120
# What has a switch of its own, by what somebody may call it.
_SWITCHES: Final[Mapping[str, str]] = {
    **{name: name for name in ("keys", "depth", "order", "position", "edit", "enable", "lock")},
    **dict.fromkeys(("secondary", "secondary_keys", "logic", "selective"), "secondary"),
    **dict.fromkeys(("outlet", "anchor"), "position"),
    **dict.fromkeys(("enabled", "on"), "enable"),
    "key": "keys",
    "content": "edit",
    "disabled": "off",
}


def field_named(word: str) -> LoreField:
    """The field that a builder calls `word`; TypedError names those there are."""
    name = "_".join(word.lower().split())
    if name in TYPED_FIELDS:
        return TYPED_FIELDS[name]
    if name in _SWITCHES:
        raise TypedError(f"'{word}' has a switch of its own: lore/{_SWITCHES[name]}.")
    near = get_close_matches(name[:40], TYPED_FIELDS, n=3)
    known = f"near it are {', '.join(near)}" if near else f"there are {', '.join(TYPED_FIELDS)}"
    raise TypedError(f"'{word}' is no field of an entry; {known}. Nothing was changed.")


def typed_value(field: LoreField, text: str) -> Any:
    """What a builder's text means; None takes back what the field says."""
    return None if text.lower() == DEFAULT else _READERS[field.typed or "text"](text)


def said_of(field: LoreField, entry: LoreEntry) -> Any:
    """What an entry says of a field, as builders read it."""
    return _IN_WORDS.get(field.name, field.says)(entry)


def in_words(value: Any) -> str:
    """A field's value in words, on one line of bounded length."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "as the book or the rules say"
    if isinstance(value, tuple | frozenset):
        return clipped(visible(", ".join(map(str, value))), _SHOWN_COLUMNS) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return clipped(visible(" ".join(str(value).split())), _SHOWN_COLUMNS) or "none"


def member_in_words(path: Sequence[Step]) -> str:
    """A member of an entry that an error names by its steps, as builders call it.

    `("when", 0, "test")` is the test of condition 1.
    """
    steps = [step for step in path if step not in _WRAPPINGS]
    name, *inside = steps or [*path]
    word = _WORDS.get(str(name), str(name))
    if name == "when" and inside:
        number, *inside = inside
        word = f"condition {int(number) + 1}"
    members = [step for step in inside if isinstance(step, str)]
    return f"the {members[-1]} of {word}" if members else word


@contextmanager
def in_words_of(label: str) -> Iterator[None]:
    """Have what is wrong with a field told of this entry, as its builder knows the field."""
    try:
        yield
    except FormatError as error:
        if not error.path:
            raise
        member = member_in_words(error.path)
        raise TypedError(f"{label}: {member} {error.problem}. Nothing was changed.") from error


def place_in_words(entry: LoreEntry) -> str:
    """Where an entry wants to stand."""
    if entry.depth == MAX_DEPTH and not entry.from_oldest:
        return f"the top of the history, {entry.role}"
    if entry.depth is not None:
        end = " from the oldest" if entry.from_oldest else ""
        is_bottom = entry.depth == 0 and not entry.from_oldest
        return f"{'bottom' if is_bottom else f'depth {entry.depth}{end}'}, {entry.role}"
    if entry.outlet:
        return f"outlet {entry.outlet}"
    if entry.anchor:
        return f"{entry.anchor.side} {entry.anchor.component}"
    if entry.mention:
        return mention_in_words(entry.mention)
    return entry.position


def _clock(entry: LoreEntry) -> Any:
    timing = entry.timing
    return timing.clock if timing.sticky or timing.cooldown or timing.delay else UNUSED


# How what builders type is read, and what is told otherwise than an entry says it.
_READERS: Final[Mapping[Typed, Callable[[str], Any]]] = {
    "text": text_in,
    "word": word,
    "flag": flag,
    "number": number,
    "number or off": number_or_off,
    "keys": keys_in,
    "mention": mention_in,
    "questions": questions,
}
_IN_WORDS: Final[Mapping[str, Callable[[LoreEntry], Any]]] = {
    "mention": place_in_words,
    "clock": _clock,
}
UNSET: Final = ("off", "none", "0", "100", in_words(None), UNUSED)
"""What a field says that nobody set."""
TOLD_APART: Final = ("name", "place", "role")
"""Fields that are told by the label of an entry and by where it stands."""
# What the editing calls a field that builders call otherwise.
_WORDS: Final[Mapping[str, str]] = {
    **{field.name: word for word, field in TYPED_FIELDS.items()},
    "secondary_keys": "secondary keys",
    "anchor": "position",
    "enabled": "state",
}
# Members of a file that only hold others.
_WRAPPINGS: Final = frozenset({"extensions", "evennia_ai"})
