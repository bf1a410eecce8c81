"""What builders' texts mean in `lore`: keys, numbers, flags, places, conditions.

Each function gives a value for `lorebook.editing.edits` or raises `CommandError` with one line.
What a value may be beyond its kind is for the editing to judge.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, get_args

from evennia_ai.commands.naming import whole_number
from evennia_ai.commands.strict import CommandError
from evennia_ai.lorebook.conditions import TESTS
from evennia_ai.lorebook.entry import AT_MENTION, MENTIONINGS, SIDES, LoreEntry, Patterns, Position
from evennia_ai.lorebook.scan.regex.pattern import Refused, is_delimited, read_pattern
from evennia_ai.text.columns import clipped

NOTHING: Final = "off"
LOGICS: Final = {"any": "any", "all": "all", "not any": "not_any", "not all": "not_all"}

# The positions that need nothing said with them.
_PLAIN: Final[tuple[str, ...]] = tuple(
    name for name in get_args(Position) if name not in ("outlet", "anchor", AT_MENTION)
)
_MENTION: Final = f"{AT_MENTION} [{' | '.join(SIDES)}] [{' | '.join(MENTIONINGS)}]"
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_FLAGS: Final = {
    **dict.fromkeys(("on", "yes", "true"), True),
    **dict.fromkeys(("off", "no", "false"), False),
}
# A key: a pattern /.../flags, which may hold commas and colons, or any text without them.
_PATTERN: Final = r"\s*(/(?:[^/\\]|\\.)+/[a-zA-Z]*(?=\s*(?:[{ends}]|$))|[^{ends}]*)\s*"
_KEY: Final = re.compile(_PATTERN.format(ends=","), re.DOTALL)
_KEY_BEFORE_COLON: Final = re.compile(_PATTERN.format(ends=",:"), re.DOTALL)
_LOGIC: Final = re.compile(r"(not\s+any|not\s+all|any|all)(?:\s*:\s*|\s+|$)(.*)", re.DOTALL | re.I)


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

    CommandError: a key that is to be a pattern cannot be read as one.
    """
    keys = [*fields.get("keys", ()), *fields.get("secondary_keys", ())]
    patterns: Patterns = "none" if of is None else of.patterns
    if patterns == "none" and any(map(is_delimited, keys)):
        fields, patterns = {**fields, "patterns": "by_form"}, "by_form"
    check_patterns(keys, patterns)
    return fields


def check_patterns(keys: Iterable[str], patterns: Patterns) -> None:
    """CommandError names the first key that is to be a pattern and cannot be read as one."""
    for key in keys:
        if patterns == "none" or (patterns == "by_form" and not is_delimited(key)):
            continue
        read = read_pattern(key)
        if isinstance(read, Refused) and read.is_broken:
            raise CommandError(f"The key {clipped(key, 80)} {read.reason}. Nothing was changed.")


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
        return {"position": "depth", "depth": whole_number(of, what="depth")}
    if place.split()[:1] == [AT_MENTION] and not of:
        return {"position": AT_MENTION, "mention": mention_in(text)}
    if place in _PLAIN and not of:
        return {"position": place}
    raise CommandError(
        f"'{text}' is no position; there are {', '.join(_PLAIN)}, outlet:<name>,"
        f" before:<component>, after:<component> and {_MENTION}. Nothing was changed."
    )


def mention_in(text: str) -> dict[str, str]:
    """What `at_mention after oldest` says: on which side of which message."""
    place, *given = text.lower().split() or [""]
    side = next((word for word in SIDES if word in given), SIDES[0])
    message = next((word for word in MENTIONINGS if word in given), MENTIONINGS[0])
    if place != AT_MENTION or len(given) > len({*given} & {side, message}):
        raise CommandError(f"'{text}' is no place; write {_MENTION}. Nothing was changed.")
    return {"side": side, "message": message}


def text_in(text: str) -> str:
    """The text itself, "" for off."""
    return "" if text.lower() == NOTHING else text


def number(text: str) -> float:
    """A number; whole where it is written so."""
    if not _NUMBER.fullmatch(text):
        raise CommandError(f"'{text}' is no number. Nothing was changed.")
    return float(text) if "." in text else int(text)


def number_or_off(text: str) -> float:
    """A number, 0 for off."""
    return 0 if text.lower() == NOTHING else number(text)


def flag(text: str) -> bool:
    """On or off."""
    if text.lower() not in _FLAGS:
        raise CommandError(f"'{text}' is neither on nor off. Nothing was changed.")
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
        raise CommandError(
            f"'{text.strip()}' is no condition; write <fact> <test> <value>, <value>, with one of"
            f" the tests {', '.join(TESTS)}. Nothing was changed."
        )
    fact, test, values = words
    return {"fact": fact, "test": test.lower(), "values": [_value(v) for v in keys_in(values)]}


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return number(text) if _NUMBER.fullmatch(text) else text
