"""Parse values that builders type for fields of a lore entry, and describe fields to builders.

The command `lore` and the forms of the web pages use the same parsers. A parser returns a value for
`formats.lorebooks.editing.edits`, or raises `TypedError` with a one-line message. The fields are
declared in `formats.lorebooks.entry_fields`; `edits` validates the values.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, Final, get_args

from evennia_ai.engine.errors import ComponentValueError, EvenniaAIError, FormatError
from evennia_ai.engine.lorebook.book import mention_in_words
from evennia_ai.engine.lorebook.entry import (
    AT_MENTION,
    MENTIONINGS,
    SIDES,
    LoreEntry,
    Patterns,
    Position,
)
from evennia_ai.engine.lorebook.scan.regex.pattern import Refused, has_slashes, read_pattern
from evennia_ai.engine.prompt.components import MAX_DEPTH
from evennia_ai.engine.prompt.conditions import parse_conditions
from evennia_ai.engine.text.columns import clip_text, escape_controls
from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS, LoreField, Typed
from evennia_ai.formats.lorebooks.values import Step

NOTHING: Final = "off"
LOGICS: Final = {"any": "any", "all": "all", "not any": "not_any", "not all": "not_all"}

# Positions that builders type as one word, without a depth, name or component.
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
# Matches a key. A regular expression /.../flags may contain commas and colons. Other keys may not.
_PATTERN: Final = r"\s*(/(?:[^/\\]|\\.)+/[a-zA-Z]*(?=\s*(?:[{ends}]|$))|[^{ends}]*)\s*"
_KEY: Final = re.compile(_PATTERN.format(ends=","), re.DOTALL)
_KEY_BEFORE_COLON: Final = re.compile(_PATTERN.format(ends=",:"), re.DOTALL)
_LOGIC: Final = re.compile(r"(not\s+any|not\s+all|any|all)(?:\s*:\s*|\s+|$)(.*)", re.DOTALL | re.I)


class TypedError(EvenniaAIError):
    """The error for a value that a builder typed and that cannot be used.

    The message says why, and what would be accepted.
    """


def parse_keys(text: str) -> list[str]:
    """Parse keys such as `a, b, /c,d/i`; "off" gives no keys.

    Commas separate keys, except inside regular expressions.
    """
    if text.lower() == NOTHING:
        return []
    return _split_keys(text, _KEY)[0]


def parse_keys_and_content(text: str) -> tuple[list[str], str]:
    """Parse keys and content such as `a, /b:c/: content`.

    The first colon outside regular expressions ends the keys.
    """
    keys, end = _split_keys(text, _KEY_BEFORE_COLON)
    return keys, text[end + 1 :].strip()


def with_patterns(fields: dict[str, Any], *, of: LoreEntry | None = None) -> dict[str, Any]:
    """Return the fields of an edit, with `patterns` added if a key of the form /.../ needs it.

    Args:
        of: the entry that is edited, None for a new entry.

    Raises:
        TypedError: a key is not a valid regular expression.
    """
    keys = [*fields.get("keys", ()), *fields.get("secondary_keys", ())]
    patterns: Patterns = "none" if of is None else of.patterns
    if patterns == "none" and any(map(has_slashes, keys)):
        fields, patterns = {**fields, "patterns": "by_form"}, "by_form"
    check_patterns(keys, patterns)
    return fields


def check_patterns(keys: Iterable[str], patterns: Patterns) -> None:
    """Raise TypedError if a key that should be a regular expression is invalid."""
    for key in keys:
        if patterns == "none" or (patterns == "by_form" and not has_slashes(key)):
            continue
        read = read_pattern(key)
        if isinstance(read, Refused) and read.is_broken:
            raise TypedError(f"The key {clip_text(key, 80)} {read.reason}. Nothing was changed.")


def _split_keys(text: str, key: re.Pattern[str]) -> tuple[list[str], int]:
    """Return the keys of a comma-separated list, and the index at which the list ends."""
    keys: list[str] = []
    at = -1
    while at < len(text) and (at < 0 or text[at] == ","):
        found = key.match(text, at + 1)
        assert found  # always matches, because the pattern also matches an empty string
        keys += [found[1].strip()] if found[1].strip() else []
        at = found.end()
    return keys, at


def parse_secondary_keys(text: str) -> dict[str, Any]:
    """Parse secondary keys such as `not any a, b` to the fields `logic` and `secondary_keys`.

    Without keys, the result has only `logic`. Without a logic, it has only `secondary_keys`.
    """
    found = _LOGIC.fullmatch(text.strip())
    if found is None:
        return {"secondary_keys": parse_keys(text)}
    logic = LOGICS[" ".join(found[1].lower().split())]
    keys = parse_keys(found[2])
    return {"logic": logic, **({"secondary_keys": keys} if keys else {})}


def parse_position(text: str) -> dict[str, Any]:
    """Parse the position of an entry to a dict of fields.

    The text is a word, `depth:<n>`, `outlet:<name>` or `before:<component>`.
    """
    place, _, of = (part.strip() for part in text.partition(":"))
    place = place.lower()
    if place in ("before", "after") and of:
        return {"position": "anchor", "anchor": {"component": of, "side": place}}
    if place == "outlet" and of:
        return {"position": "outlet", "outlet": of}
    if place == "depth" and of:
        return {"position": "depth", "depth": _whole(of, what="depth")}
    if place.split()[:1] == [AT_MENTION] and not of:
        return {"position": AT_MENTION, "mention": parse_mention(text)}
    if place in _PLAIN and not of:
        return {"position": place}
    raise TypedError(
        f"'{text}' is not a position; there are {', '.join(_PLAIN)}, outlet:<name>,"
        f" before:<component>, after:<component> and {_MENTION}. Nothing was changed."
    )


def parse_mention(text: str) -> dict[str, str]:
    """Parse a position such as `at_mention after oldest` to its side and its message."""
    place, *given = text.lower().split() or [""]
    side = next((word for word in SIDES if word in given), SIDES[0])
    message = next((word for word in MENTIONINGS if word in given), MENTIONINGS[0])
    if place != AT_MENTION or len(given) > len({*given} & {side, message}):
        raise TypedError(f"'{text}' is not a place; write {_MENTION}. Nothing was changed.")
    return {"side": side, "message": message}


def parse_text(text: str) -> str:
    """Return the text that a builder typed; "off" gives ""."""
    return "" if text.lower() == NOTHING else text


def parse_number(text: str) -> float:
    """Parse a typed number; without a decimal point it becomes an int."""
    if not _NUMBER.fullmatch(text):
        raise TypedError(f"'{text}' is not a number. Nothing was changed.")
    return float(text) if "." in text else int(text)


def parse_number_or_off(text: str) -> float:
    """Parse a typed number; "off" gives 0."""
    return 0 if text.lower() == NOTHING else parse_number(text)


def _whole(text: str, *, what: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise TypedError(
            f"The {what} must be a whole number, 0 or more; '{text}' is not. Nothing was changed."
        )
    return int(text)


def parse_flag(text: str) -> bool:
    """Parse "on" or "off" to True or False."""
    if text.lower() not in _FLAGS:
        raise TypedError(f"'{text}' is neither on nor off. Nothing was changed.")
    return _FLAGS[text.lower()]


def parse_word(text: str) -> str:
    """Return a typed word in lower case; a later check decides whether it is allowed."""
    return text.lower()


def parse_questions(text: str) -> list[dict[str, Any]]:
    """Parse typed conditions: `<fact> <test> <value>, <value>; <fact> <test> <value>`."""
    if text.lower() == NOTHING:
        return []
    try:
        parsed = parse_conditions(text)
    except ComponentValueError as error:
        raise TypedError(f"{error}. Nothing was changed.") from error
    return [{"fact": one.fact, "test": one.test, "values": [*one.values]} for one in parsed]


DEFAULT: Final = "default"
UNUSED: Final = "unused, because there is no sticky, cooldown or delay"

_SHOWN_COLUMNS: Final = 120
# Builders may try these words with `lore/set`. Each is mapped to the switch of `lore` that sets
# this field. An error message names the switch.
_SWITCHES: Final[Mapping[str, str]] = {
    **{name: name for name in ("keys", "depth", "order", "position", "edit", "enable", "lock")},
    **dict.fromkeys(("secondary", "secondary_keys", "logic", "selective"), "secondary"),
    **dict.fromkeys(("outlet", "anchor"), "position"),
    **dict.fromkeys(("enabled", "on"), "enable"),
    "key": "keys",
    "content": "edit",
    "disabled": "off",
}


def find_field(word: str) -> LoreField:
    """Return the field of an entry that has this name in builders' words.

    Raises:
        TypedError: there is no such field; the message lists the fields.
    """
    name = "_".join(word.lower().split())
    if name in TYPED_FIELDS:
        return TYPED_FIELDS[name]
    if name in _SWITCHES:
        raise TypedError(f"'{word}' has a switch of its own: lore/{_SWITCHES[name]}.")
    near = get_close_matches(name[:40], TYPED_FIELDS, n=3)
    known = (
        f"similar names are {', '.join(near)}" if near else f"there are {', '.join(TYPED_FIELDS)}"
    )
    raise TypedError(f"'{word}' is not a field of an entry; {known}. Nothing was changed.")


def parse_value(field: LoreField, text: str) -> Any:
    """Parse the typed value of a field; "default" gives None, which removes the field."""
    return None if text.lower() == DEFAULT else _READERS[field.typed or "text"](text)


def field_text(field: LoreField, entry: LoreEntry) -> Any:
    """Return an entry's value of a field in the form that builders know."""
    return _IN_WORDS.get(field.name, field.says)(entry)


def value_in_words(value: Any) -> str:
    """Return the value of a field as one line of limited length."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "as the book or the rules say"
    if isinstance(value, tuple | frozenset):
        return clip_text(escape_controls(", ".join(map(str, value))), _SHOWN_COLUMNS) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return clip_text(escape_controls(" ".join(str(value).split())), _SHOWN_COLUMNS) or "none"


def member_in_words(path: Sequence[Step]) -> str:
    """Return words for the member at the path of an error: builders' word for its field.

    For example, `("when", 0, "test")` is "the test of condition 1".
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
    """Convert a FormatError with a path to a `TypedError` while this context is active.

    The message names the entry and the word that builders use for the field.
    """
    try:
        yield
    except FormatError as error:
        if not error.path:
            raise
        member = member_in_words(error.path)
        raise TypedError(f"{label}: {member} {error.problem}. Nothing was changed.") from error


def place_in_words(entry: LoreEntry) -> str:
    """Return words for the position that an entry requests, such as "depth 4, system"."""
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


_READERS: Final[Mapping[Typed, Callable[[str], Any]]] = {
    "text": parse_text,
    "word": parse_word,
    "flag": parse_flag,
    "number": parse_number,
    "number or off": parse_number_or_off,
    "keys": parse_keys,
    "mention": parse_mention,
    "questions": parse_questions,
}
# Maps fields to functions that return their values in another form for builders.
_IN_WORDS: Final[Mapping[str, Callable[[LoreEntry], Any]]] = {
    "mention": place_in_words,
    "clock": _clock,
}
UNSET: Final = ("off", "none", "0", "100", value_in_words(None), UNUSED)
"""The values, as `value_in_words` renders them, of fields that have their default."""
FIELDS_SHOWN_ELSEWHERE: Final = ("name", "place", "role")
"""Fields that lists of an entry's fields leave out, because its label and position show them."""
# Maps the names of fields in edits to the words that builders use for them.
_WORDS: Final[Mapping[str, str]] = {
    **{field.name: word for word, field in TYPED_FIELDS.items()},
    "secondary_keys": "secondary keys",
    "anchor": "position",
    "enabled": "state",
}
# Members of a file that only contain other members, so descriptions of paths leave them out.
_WRAPPINGS: Final = frozenset({"extensions", "evennia_ai"})
